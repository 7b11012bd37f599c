package message

// Bits of Message.SysFlag.
const (
	SysCompressed          int32 = 0x1
	SysMultiTags           int32 = 0x2
	SysTransactionPrepared int32 = 0x4
	SysTransactionCommit   int32 = 0x8
	SysTransactionRollback int32 = 0xC
	SysBornHostV6          int32 = 0x10
	SysStoreHostV6         int32 = 0x20
	SysNeedUnwrap          int32 = 0x40
	SysInnerBatch          int32 = 0x80
	SysLZ4                 int32 = 0x100
	SysZSTD                int32 = 0x200
	SysZLIB                int32 = 0x300

	sysTransactionMask = SysTransactionRollback
	sysCompressionMask = 0x700
)

// TransactionType is 0 or one of the SysTransaction… values.
func TransactionType(sysFlag int32) int32 { return sysFlag & sysTransactionMask }

// WithTransactionType returns sysFlag with the transaction bits set to kind.
func WithTransactionType(sysFlag, kind int32) int32 {
	return sysFlag&^sysTransactionMask | kind&sysTransactionMask
}

// Compression is how the body is packed: 0 when it is not, else SysLZ4, SysZSTD or
// SysZLIB. Old clients set no kind and mean ZLIB.
func Compression(sysFlag int32) int32 {
	if sysFlag&SysCompressed == 0 {
		return 0
	}
	if kind := sysFlag & sysCompressionMask; kind != 0 {
		return kind
	}
	return SysZLIB
}
