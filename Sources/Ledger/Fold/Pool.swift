/// A list whose memory is used again for each stream.
///
/// Like an array, but it has one owner, so that no change first asks who else holds it: that
/// question was a tenth of the fold's time.
@safe struct Pool<Element>: ~Copyable {
    // Safety: allocated in `init` or `grow`, freed in `deinit`; the first `count` elements are
    // initialized, with a sample all that there is room for, and every place is checked against
    // `count`. Elements hold no references, so nothing is released where one is left behind.
    private var base: UnsafeMutablePointer<Element>
    private var capacity: Int
    /// How many elements it has.
    private(set) var count = 0

    /// What the room for an element holds that is to be filled in place; nil where none is.
    private let sample: UnsafeMutablePointer<Element>?

    /// Makes an empty list.
    init() {
        capacity = 16
        unsafe sample = nil
        unsafe base = .allocate(capacity: capacity)
    }

    /// Makes an empty list of wide elements, which `extend` adds.
    init(like element: Element) {
        capacity = 16
        let first = UnsafeMutablePointer<Element>.allocate(capacity: 1)
        unsafe first.initialize(to: element)
        unsafe sample = first
        unsafe base = .allocate(capacity: capacity)
        unsafe base.initialize(repeating: element, count: capacity)
    }

    deinit {
        unsafe base.deallocate()
        unsafe sample?.deinitialize(count: 1)
        unsafe sample?.deallocate()
    }

    /// Whether it has no element.
    var isEmpty: Bool { count == 0 }

    /// The last element, nil where there is none.
    var last: Element? { count == 0 ? nil : self[count - 1] }

    /// The first element of which something is so.
    func first(where isSo: (Element) -> Bool) -> Element? {
        firstIndex(where: isSo).map { self[$0] }
    }

    /// The place of the first element of which something is so.
    func firstIndex(where isSo: (Element) -> Bool) -> Int? {
        for place in 0..<count where isSo(self[place]) { return place }
        return nil
    }

    /// Whether something is so of an element.
    func contains(where isSo: (Element) -> Bool) -> Bool {
        firstIndex(where: isSo) != nil
    }

    /// The places of its elements.
    var indices: Range<Int> { 0..<count }

    /// The element at a place.
    subscript(place: Int) -> Element {
        @inline(__always) unsafeAddress {
            check(place)
            return unsafe UnsafePointer(base + place)
        }
        @inline(__always) unsafeMutableAddress {
            check(place)
            return unsafe base + place
        }
    }

    /// Traps where a place is beyond the list; a negative one is beyond it too as unsigned.
    @inline(__always) private func check(_ place: Int) {
        precondition(UInt(bitPattern: place) < UInt(bitPattern: count), "a place beyond the list")
    }

    /// Lends an element: its address is found and checked once, not for each field.
    @inline(__always) func read<Value>(_ place: Int, _ body: (borrowing Element) -> Value) -> Value
    {
        check(place)
        return unsafe body((base + place).pointee)
    }

    /// Lends an element to be changed.
    @inline(__always) mutating func update<Value>(
        _ place: Int,
        _ body: (inout Element) -> Value
    ) -> Value {
        check(place)
        return unsafe body(&(base + place).pointee)
    }

    /// Adds an element at the end.
    @inline(__always) mutating func append(_ element: Element) {
        if count == capacity { grow() }
        unsafe (base + count).initialize(to: element)
        count += 1
    }

    /// Adds an element to be filled in place; tells its place.
    ///
    /// It holds what the last element there did, or the sample: whoever fills it sets each field. A
    /// wide value that is made elsewhere is copied twice before it arrives.
    @inline(__always) mutating func extend() -> Int {
        precondition(unsafe sample != nil, "there is no sample")
        if count == capacity { grow() }
        count += 1
        return count - 1
    }

    /// Removes the last so many elements.
    mutating func removeLast(_ number: Int) {
        precondition(number <= count, "more elements than there are")
        count -= number
    }

    /// Removes the elements of which something is so.
    mutating func removeAll(where isSo: (Element) -> Bool) {
        var kept = 0
        for place in 0..<count where !isSo(self[place]) {
            if kept < place { self[kept] = self[place] }
            kept += 1
        }
        removeLast(count - kept)
    }

    /// Empties it and keeps its memory.
    @inline(__always) mutating func reset() { count = 0 }

    /// Sorts unless the elements are in order already, as they nearly always are; equal ones keep
    /// their order.
    @inline(__always) mutating func sortIfNeeded(
        _ precedes: (Element, Element) -> Bool
    ) {
        var sorted = 1
        while sorted < count {
            if unsafe precedes(base[sorted], base[sorted - 1]) { break }
            sorted += 1
        }
        if sorted < count { sort(from: sorted, precedes) }
    }

    /// Sorts where all before a place are in order.
    mutating func sort(
        from place: Int,
        _ precedes: (Element, Element) -> Bool
    ) {
        guard count <= Self.insertionMax else {
            var array = unsafe Array(UnsafeBufferPointer(start: base, count: count))
            array.sort { precedes($0, $1) }
            for place in 0..<count { unsafe base[place] = array[place] }
            return
        }
        for step in place..<count {
            let element = unsafe base[step]
            var slot = step
            while slot > 0, unsafe precedes(element, base[slot - 1]) {
                unsafe base[slot] = base[slot - 1]
                slot -= 1
            }
            unsafe base[slot] = element
        }
    }

    /// Up to so many elements are sorted by insertion.
    private static var insertionMax: Int { 64 }

    @inline(never) private mutating func grow() {
        let wider = UnsafeMutablePointer<Element>.allocate(capacity: capacity * 2)
        unsafe wider.moveInitialize(from: base, count: count)
        if let sample = unsafe sample {
            unsafe (wider + count).initialize(
                repeating: sample.pointee,
                count: capacity * 2 - count
            )
        }
        unsafe base.deallocate()
        unsafe base = wider
        capacity *= 2
    }
}
