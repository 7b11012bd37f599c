package message

// GroupQueue is the queue, of n, of a message group: every proxy of a cluster, Apache's
// included, must choose the same, or the order within the group is lost.
func GroupQueue(group string, n int) int {
	return consistentHash(int64(JavaHash(group)), n)
}

// consistentHash maps key to one of n buckets so that few keys move when n grows: jump
// consistent hash over a 64-bit linear congruential generator, with the rounding that
// Guava's implementation has.
func consistentHash(key int64, n int) int {
	state := uint64(key)
	bucket := 0
	for {
		state = 2862933555777941757*state + 1
		draw := float64(int32(state>>33)+1) / (1 << 31)
		next := float64(bucket+1) / draw
		if next >= float64(n) {
			return bucket
		}
		bucket = int(next)
	}
}
