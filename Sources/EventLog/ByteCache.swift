/// What a text of few distinct values means, looked up by its bytes.
///
/// A rebuild reads dozens of such texts for each event. Making a `String` and taking the symbol
/// table's lock for each would cost more than the fold itself.
struct ByteCache<Value> {
    private struct Entry {
        var hash: UInt64
        var bytes: Range<Int>
        var value: Value
    }

    /// How many values are kept; beyond that the cache starts anew.
    private let countMax: Int
    private var slots: [Int32]
    private var entries: [Entry] = []
    /// The bytes of all entries, one after the other.
    private var room: [UInt8] = []

    /// - Parameter countMax: a power of two.
    init(countMax: Int = 4096) {
        precondition(countMax.nonzeroBitCount == 1)
        self.countMax = countMax
        slots = Array(repeating: -1, count: countMax * 2)
    }

    /// The value that belongs to the bytes; `make` is called where it is not known yet.
    @inline(__always)
    mutating func value(_ bytes: UnsafeRawBufferPointer, _ make: (String) -> Value) -> Value {
        let hash = unsafe Self.hash(bytes)
        var slot = Int(truncatingIfNeeded: hash) & (slots.count - 1)
        while slots[slot] >= 0 {
            let index = Int(slots[slot])
            if entries[index].hash == hash, unsafe equals(entries[index].bytes, bytes) {
                return entries[index].value
            }
            slot = (slot + 1) & (slots.count - 1)
        }
        return unsafe add(bytes, hash, at: slot, make)
    }

    @inline(never)
    private mutating func add(
        _ bytes: UnsafeRawBufferPointer,
        _ hash: UInt64,
        at slot: Int,
        _ make: (String) -> Value
    ) -> Value {
        let value = unsafe make(String(decoding: bytes, as: UTF8.self))
        if entries.count == countMax {
            self = ByteCache(countMax: countMax)
            return value
        }
        let start = room.count
        unsafe room.append(contentsOf: bytes)
        slots[slot] = Int32(entries.count)
        entries.append(Entry(hash: hash, bytes: start..<room.count, value: value))
        return value
    }

    /// Eight bytes a step; what is equal is compared, so a collision costs time only.
    private static func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var hash = UInt64(bytes.count) ^ 0xA076_1D64_78BD_642F
        var at = 0
        while at + 8 <= bytes.count {
            let word = unsafe bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self)
            hash = mixed(hash ^ word)
            at += 8
        }
        var rest: UInt64 = 0
        while at < bytes.count {
            rest = unsafe rest << 8 | UInt64(bytes[at])
            at += 1
        }
        return mixed(hash ^ rest)
    }

    private static func mixed(_ value: UInt64) -> UInt64 {
        let product = value.multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
        return product.high ^ product.low
    }

    private func equals(_ range: Range<Int>, _ bytes: UnsafeRawBufferPointer) -> Bool {
        guard range.count == bytes.count else { return false }
        return unsafe room.withUnsafeBytes { room in
            var at = 0
            while at + 8 <= bytes.count {
                let left = unsafe room.loadUnaligned(
                    fromByteOffset: range.lowerBound + at,
                    as: UInt64.self
                )
                let right = unsafe bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self)
                guard left == right else { return false }
                at += 8
            }
            while at < bytes.count {
                guard unsafe room[range.lowerBound + at] == bytes[at] else { return false }
                at += 1
            }
            return true
        }
    }
}
