/// What is due first comes out first.
struct Heap<Element: Comparable & Sendable>: Sendable {
    private var elements: [Element] = []

    var first: Element? { elements.first }
    var count: Int { elements.count }

    mutating func push(_ element: Element) {
        elements.append(element)
        var place = elements.count - 1
        while place > 0, elements[place] < elements[(place - 1) / 2] {
            elements.swapAt(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    mutating func pop() -> Element? {
        guard let top = elements.first else { return nil }
        let last = elements.removeLast()
        guard !elements.isEmpty else { return top }
        elements[0] = last
        var place = 0
        while true {
            var least = place
            for child in [2 * place + 1, 2 * place + 2] where child < elements.count {
                if elements[child] < elements[least] { least = child }
            }
            guard least != place else { return top }
            elements.swapAt(place, least)
            place = least
        }
    }
}

/// Something numbered that is due at an instant.
struct Due: Comparable, Sendable {
    var date: Int64
    var number: Int

    static func < (one: Due, other: Due) -> Bool {
        (one.date, one.number) < (other.date, other.number)
    }
}
