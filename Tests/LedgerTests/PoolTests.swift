import Testing

@testable import Ledger

/// The fold's own list: like an array, and never beyond its end.
@Suite struct PoolTests {
    private static func pool(_ elements: some Sequence<Int>) -> Pool<Int> {
        var pool = Pool<Int>()
        for element in elements { pool.append(element) }
        return pool
    }

    private static func array<Element>(_ pool: borrowing Pool<Element>) -> [Element] {
        var elements: [Element] = []
        for place in pool.indices { elements.append(pool[place]) }
        return elements
    }

    // MARK: Elements

    /// There is room for 16 at first.
    @Test(arguments: [0, 1, 15, 16, 17, 33, 100])
    func aListHoldsWhatWasAddedHoweverMuch(_ count: Int) {
        let pool = Self.pool(0..<count)
        let (size, isEmpty, last) = (pool.count, pool.isEmpty, pool.last)
        #expect(size == count)
        #expect(isEmpty == (count == 0))
        #expect(last == (count == 0 ? nil : count - 1))
        let elements = Self.array(pool)
        #expect(elements == Array(0..<count))
    }

    @Test func anElementIsFoundByWhatIsSoOfIt() {
        let pool = Self.pool([5, 7, 7, 9])
        let place = pool.firstIndex { $0 == 7 }
        let (found, missing) = (pool.first { $0 > 7 }, pool.first { $0 == 8 })
        #expect(place == 1)
        #expect(found == 9)
        #expect(missing == nil)
        let (hasNine, hasEight) = (pool.contains { $0 == 9 }, pool.contains { $0 == 8 })
        #expect(hasNine && !hasEight)
    }

    /// Room that was never used holds the sample, also where it was made later.
    @Test func anElementThatIsAddedInPlaceHoldsTheSample() {
        var pool = Pool(like: 42)
        for place in 0..<40 {
            let new = pool.extend()
            let (count, element) = (pool.count, pool[place])
            #expect(new == place)
            #expect(count == place + 1)
            #expect(element == 42)
            pool[place] = place
        }
        let elements = Self.array(pool)
        #expect(elements == Array(0..<40))
        pool.reset()
        let isEmpty = pool.isEmpty
        let first = pool.extend()
        #expect(isEmpty && first == 0)
    }

    @Test func anElementIsLentAndChangedInPlace() {
        var pool = Self.pool(0..<20)
        let before = pool.read(3) { $0 }
        #expect(before == 3)
        let old = pool.update(3) { element in
            defer { element = 30 }
            return element
        }
        let (new, count) = (pool.read(3) { $0 }, pool.count)
        #expect(old == 3)
        #expect(new == 30)
        #expect(count == 20)
    }

    @Test func whatIsRemovedIsGoneAndTheRestStaysInOrder() {
        var pool = Self.pool(0..<20)
        pool.removeAll { $0 % 3 == 0 }
        let kept = Self.array(pool)
        #expect(kept == (0..<20).filter { $0 % 3 != 0 })
        pool.removeAll { _ in false }
        let count = pool.count
        #expect(count == 13)
        pool.removeLast(3)
        let rest = Self.array(pool)
        #expect(rest == [1, 2, 4, 5, 7, 8, 10, 11, 13, 14])
        pool.removeLast(10)
        pool.removeLast(0)
        let isEmpty = pool.isEmpty
        #expect(isEmpty)
    }

    // MARK: Order

    private struct Pair: Equatable {
        var key: Int
        var place: Int
    }

    /// Equal ones keep their order, whichever way is taken; past 64 it is another one.
    @Test(arguments: [0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 200])
    func sortingIsThatOfAnArrayAndKeepsEqualOnesInOrder(_ count: Int) {
        for seed in 0..<20 as Range<UInt64> {
            var random = SeededGenerator(seed: seed)
            var pairs: [Pair] = []
            for place in 0..<count { pairs.append(Pair(key: random.below(12), place: place)) }
            var pool = Pool<Pair>()
            for pair in pairs { pool.append(pair) }
            let known = Set(pairs.map(\.place))
            var isWithin = true
            pool.sortIfNeeded { left, right in
                isWithin = isWithin && known.contains(left.place) && known.contains(right.place)
                return left.key < right.key
            }
            #expect(isWithin, "seed \(seed): something beyond the list was asked about")
            let sorted = Self.array(pool)
            let wanted = pairs.sorted { ($0.key, $0.place) < ($1.key, $1.place) }
            #expect(sorted == wanted, "seed \(seed)")
        }
    }

    /// Nearly always the fold's lists are in order: then each element is looked at once.
    @Test(arguments: [2, 16, 64, 65, 100])
    func aListInOrderIsLookedAtOnce(_ count: Int) {
        var pool = Self.pool(0..<count)
        var looks = 0
        pool.sortIfNeeded {
            looks += 1
            return $0 < $1
        }
        let elements = Self.array(pool)
        #expect(looks == count - 1)
        #expect(elements == Array(0..<count))
    }

    @Test(arguments: [10, 100])
    func whatIsInOrderAtTheBeginningIsSortedWithTheRest(_ count: Int) {
        var pool = Self.pool(Array(5..<count) + Array(0..<5).reversed())
        pool.sort(from: count - 5) { $0 < $1 }
        let elements = Self.array(pool)
        #expect(elements == Array(0..<count))
    }

    // MARK: Beyond the end

    @Test func aPlaceBeyondTheListTraps() async {
        await #expect(processExitsWith: .failure) { _ = PoolTests.pool(0..<3)[3] }
        await #expect(processExitsWith: .failure) { _ = PoolTests.pool(0..<3)[-1] }
        await #expect(processExitsWith: .failure) {
            var pool = PoolTests.pool(0..<3)
            pool[3] = 0
        }
        await #expect(processExitsWith: .failure) { PoolTests.pool(0..<3).read(3) { _ in } }
        await #expect(processExitsWith: .failure) {
            var pool = PoolTests.pool(0..<3)
            pool.update(3) { $0 = 0 }
        }
    }

    @Test func moreElementsThanThereAreCannotBeRemoved() async {
        await #expect(processExitsWith: .failure) {
            var pool = PoolTests.pool(0..<3)
            pool.removeLast(4)
        }
    }

    @Test func aListWithoutASampleCannotBeExtended() async {
        await #expect(processExitsWith: .failure) {
            var pool = Pool<Int>()
            _ = pool.extend()
        }
    }

    // MARK: Slots

    @Test func slotsHandOutWhatWasFilledInAndBeginAnew() {
        var slots = Slots(like: 42)
        #expect(slots.elements.isEmpty)
        for number in 0..<20 {
            slots.add {
                #expect($0 == 42)
                $0 = number
            }
        }
        #expect(Array(slots.elements) == Array(0..<20))
        for number in 20..<40 {
            slots.addCopyOfLast {
                #expect($0 == number - 1)
                $0 = number
            }
        }
        #expect(slots.count == 40)
        #expect(Array(slots.elements) == Array(0..<40))
        slots[7] += 100
        #expect(slots[7] == 107)
        // Whoever holds what was handed out keeps it.
        let kept = slots.elements
        slots.reset()
        slots.add { $0 = 1 }
        #expect(Array(slots.elements) == [1])
        #expect(kept.count == 40 && kept.first == 0)
    }

    @Test func aSlotBeyondTheListTraps() async {
        await #expect(processExitsWith: .failure) {
            var slots = Slots(like: 0)
            slots.add { $0 = 1 }
            _ = slots[1]
        }
        await #expect(processExitsWith: .failure) {
            var slots = Slots(like: 0)
            slots.add { $0 = 1 }
            slots[1] = 2
        }
        await #expect(processExitsWith: .failure) {
            var slots = Slots(like: 0)
            slots.addCopyOfLast { $0 = 1 }
        }
    }
}
