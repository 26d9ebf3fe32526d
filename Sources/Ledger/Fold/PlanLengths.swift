/// The lengths of the plans of many periods in turn: each product is looked for once.
struct PlanLengths {
    @Packed private var last: Symbol?
    private var length: Milliseconds?
    // Few change between more than two products; the rest are in a dictionary.
    @Packed private var other: Symbol?
    private var otherLength: Milliseconds?
    /// Nil as long as there are none: to make an empty dictionary is a call.
    private var known: [Symbol: Milliseconds?]?

    /// The same as `Registers.planLength` says.
    @inline(__always) mutating func length(
        of number: Int,
        _ registers: borrowing Registers,
        _ events: Events
    ) -> Milliseconds {
        let product = registers.periods[number].productID
        if let product, product != last { change(to: product, registers, events) }
        return product == nil
            ? registers.periods[number].length : length ?? registers.periods[number].length
    }

    @inline(never) private mutating func change(
        to product: Symbol,
        _ registers: borrowing Registers,
        _ events: Events
    ) {
        (last, other) = (other, last)
        (length, otherLength) = (otherLength, length)
        guard product != last else { return }
        if let last {
            if known == nil { known = [:] }
            known?[last] = .some(length)
        }
        last = product
        length = known?[product] ?? registers.planLength(of: product, events)
    }
}
