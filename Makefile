# make check needs Go alone. The suites with other languages need Java 17, Maven, Python 3, npm and cargo as well.

GO     ?= go
BASE   ?= HEAD
ROUNDS ?= 100
COUNT  ?= 10000
FUZZ   ?= 30s
FOR    ?= 2m

.PHONY: build check race cross fuzz crash exact exact-apache long large compat compat-apache bench bench-apache bench-apache-pop bench-apache-kinds scale

build:
	CGO_ENABLED=0 $(GO) build -o bin/bolide ./cmd/bolide

# What must pass before anything lands: format, vet, the rule tests, all unit tests.
check:
	@bad=$$(gofmt -l .); [ -z "$$bad" ] || { echo "gofmt: $$bad"; exit 1; }
	$(GO) vet ./...
	cd test/compat/go && $(GO) vet ./...
	$(GO) test ./...

# The race detector needs a C compiler; builds never do.
race:
	CGO_ENABLED=1 $(GO) test -race ./...

# Every platform that is promised.
cross:
	@for os in linux darwin windows; do for arch in amd64 arm64; do \
		echo "build $$os/$$arch"; \
		CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch $(GO) build ./... || exit 1; done; done

# Every fuzz target for a while.
fuzz:
	@for f in $$(grep -rlE '^func Fuzz' --include='*_test.go' .); do \
		for target in $$(grep -oE '^func Fuzz[A-Za-z0-9_]+' $$f | cut -c6-); do \
			echo "fuzz $$target in $$(dirname $$f)"; \
			$(GO) test -run='^$$' -fuzz="^$$target$$" -fuzztime=$(FUZZ) ./$$(dirname $$f) || exit 1; done; done

# kill -9 at random moments under load, ROUNDS times.
crash:
	BOLIDE_CRASH_ROUNDS=$(ROUNDS) $(GO) test -count=1 -timeout=6h -v ./test/crash

# Start of a large store and many topics, on the real disk: 20 GiB of it.
large:
	STORE_MIB=20480 STORE_QUEUES=20000 TOPICS=200000 $(GO) test -count=1 -timeout=2h -v -run 'Large|ManyTopics' ./internal/storage ./server

# Hours: an hour of POP under kills, long random histories, a thousand kills.
long:
	$(MAKE) exact FOR=1h
	$(GO) test ./internal/broker/pop -run TestModel -timeout=6h -rapid.checks=100000 -rapid.steps=60
	BOLIDE_CRASH_TIMERS=50000 $(MAKE) crash ROUNDS=1000

# What POP promises, asked of a server that is killed again and again; the same of Apache
# RocketMQ, to compare.
exact:
	$(GO) run ./test/exact --for $(FOR)

exact-apache:
	$(GO) run ./test/exact --for $(FOR) --server apache --every 15s --patience 5m

# Official clients and tools against this tree's Bolide.
compat:
	$(GO) run ./test/compat --count $(COUNT)

# The same suites against Apache RocketMQ 5.5.0.
compat-apache:
	$(GO) run ./test/compat --server apache --suites go,java,python,node,rust,mqadmin,differences,metrics --count $(COUNT)

# Benchmarks beside the code, compared with those of the commit BASE.
bench:
	@old=$$(mktemp -d) && trap 'git worktree remove --force '$$old EXIT && git worktree add -q --detach $$old $(BASE) && \
	(cd $$old && $(GO) test -run='^$$' -bench=. -count=6 ./internal/... > bench.txt; true) && \
	$(GO) test -run='^$$' -bench=. -count=6 ./internal/... > $$old/new.txt; \
	$(GO) run golang.org/x/perf/cmd/benchstat@latest $$old/bench.txt $$old/new.txt

# Both servers in turn on the same workloads; writes the figures of docs/performance.md.
bench-apache: build
	$(GO) run ./test/benchapache --binary bin/bolide --doc docs/performance.md

# POP over Remoting, with Apache in each of its ways to keep what is in flight.
bench-apache-pop: build
	$(GO) run ./test/benchapache --binary bin/bolide --table pop --doc docs/performance.md

# Timers, transactions and lite topics; what Apache cannot do is said in its row.
bench-apache-kinds: build
	$(GO) run ./test/benchapache --binary bin/bolide --table kinds --doc docs/performance.md

# Many topics, groups, clients and keys on the built binary; Linux, 3 GB of disk.
scale:
	BOLIDE_SCALE=1 $(GO) test -count=1 -timeout=15m -v ./test/scale
