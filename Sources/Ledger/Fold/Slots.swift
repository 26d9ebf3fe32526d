/// A list whose memory is used again for each stream, and handed to histories without a copy.
///
/// A history holds a slice of it. Should it still do so when the next stream is folded, the list is
/// copied first, as any array is; a history that is folded into again has let go of it by then.
struct Slots<Element> {
    /// The elements, and behind them room for more.
    private var room: [Element]
    /// What the room for an element holds at first; an array, so that the list itself is small.
    private let sample: [Element]
    /// How many elements it has.
    private(set) var count = 0

    /// Makes an empty list; what is beyond its end holds the sample at first.
    init(like sample: Element) {
        self.sample = [sample]
        room = Array(repeating: sample, count: 16)
    }

    /// The elements, as long as nothing changes the list.
    var elements: ArraySlice<Element> {
        @inline(__always) get { count == 0 ? [] : room[..<count] }
    }

    /// The element at a place.
    subscript(place: Int) -> Element {
        @inline(__always) get {
            check(place)
            return room[place]
        }
        @inline(__always) _modify {
            check(place)
            yield &room[place]
        }
    }

    /// Adds an element, filled in place; it holds what the last one there did, or the sample, so
    /// each field is to be set.
    @inline(__always) mutating func add(_ fill: (inout Element) -> Void) {
        if count == room.count { grow() }
        fill(&room[count])
        count += 1
    }

    /// Adds a copy of the last element, to be changed in place.
    @inline(__always) mutating func addCopyOfLast(_ change: (inout Element) -> Void) {
        check(count - 1)
        if count == room.count { grow() }
        room[count] = room[count - 1]
        change(&room[count])
        count += 1
    }

    /// Empties it and keeps its memory.
    @inline(__always) mutating func reset() { count = 0 }

    @inline(__always) private func check(_ place: Int) {
        precondition(UInt(bitPattern: place) < UInt(bitPattern: count), "a place beyond the list")
    }

    @inline(never) private mutating func grow() {
        room.append(contentsOf: repeatElement(sample[0], count: room.count))
    }
}
