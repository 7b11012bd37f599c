package txn

// CheckAt asks about what is due at a time, one burst.
func (t *Txn) CheckAt(ms int64) {
	t.lookUntil(ms)
	t.check(ms)
}
