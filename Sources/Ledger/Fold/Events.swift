/// The events of one stream while they are folded: read in place, never copied.
@safe struct Events {
    // Safety: lent by the array for the time of one `withUnsafeBufferPointer`; the fold keeps no
    // `Events`, and every place is checked against `count`.
    private let base: UnsafePointer<Event>
    let count: Int

    /// Lends the events to a closure; there is at least one.
    static func lend(_ events: [Event], to body: (Events) -> Void) {
        unsafe events.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress, buffer.count > 0 else { return }
            unsafe body(Events(base: base, count: buffer.count))
        }
    }

    private init(base: UnsafePointer<Event>, count: Int) {
        unsafe self.base = base
        self.count = count
    }

    subscript(place: Int) -> Event {
        @inline(__always) unsafeAddress {
            precondition(
                UInt(bitPattern: place) < UInt(bitPattern: count),
                "a place beyond the stream"
            )
            return unsafe base + place
        }
    }
}
