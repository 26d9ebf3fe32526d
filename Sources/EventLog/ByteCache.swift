/// What a text of few distinct values means, looked up by its bytes.
///
/// A rebuild reads dozens of such texts for each event. Making a `String` and taking the symbol
/// table's lock for each would cost more than the fold itself.
struct ByteCache<Value> {
    private struct Entry {
        var hash: UInt64
        var bytes: [UInt8]
        var value: Value
    }

    /// How many values are kept; beyond that the cache starts anew.
    private let countMax: Int
    private var slots: [Int32]
    private var entries: [Entry] = []

    init(countMax: Int = 4096) {
        self.countMax = countMax
        slots = Array(repeating: -1, count: countMax * 2)
    }

    /// The value that belongs to the bytes; `make` is called where it is not known yet.
    mutating func value(_ bytes: UnsafeRawBufferPointer, _ make: (String) -> Value) -> Value {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for index in 0..<bytes.count {
            hash = unsafe (hash ^ UInt64(bytes[index])) &* 0x100_0000_01B3
        }
        var slot = Int(hash % UInt64(slots.count))
        while slots[slot] >= 0 {
            let index = Int(slots[slot])
            if entries[index].hash == hash, unsafe Self.equal(entries[index].bytes, bytes) {
                return entries[index].value
            }
            slot += 1
            if slot == slots.count { slot = 0 }
        }
        let value = unsafe make(String(decoding: bytes, as: UTF8.self))
        if entries.count == countMax {
            self = ByteCache(countMax: countMax)
            return value
        }
        slots[slot] = Int32(entries.count)
        entries.append(Entry(hash: hash, bytes: unsafe Array(bytes), value: value))
        return value
    }

    private static func equal(_ left: [UInt8], _ right: UnsafeRawBufferPointer) -> Bool {
        guard left.count == right.count else { return false }
        for index in 0..<left.count {
            guard unsafe left[index] == right[index] else { return false }
        }
        return true
    }
}
