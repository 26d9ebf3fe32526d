/// The notifications that were sent, in order, and the attempts to deliver them.
struct Outbox: Sendable {
    /// How long after the previous attempt the next one is made, in hours.
    static let retryHours: [Int64] = [1, 12, 24, 48, 72]

    /// Where the content of a notification stands.
    enum Origin: Hashable, Sendable {
        /// A subscription's notice, both by their places.
        case subscription(Int, Int)
        /// One about the app, by its place.
        case app(Int)
    }

    /// A notification that was sent.
    struct Item: Sendable {
        let origin: Origin
        let signedDate: Int64
        let fate: DeliveryFate
        /// What came of the attempts that are over.
        var attempts: [SendAttempt] = []
        /// How many attempts were begun.
        var begun = 0
        /// When the attempt that is under way began.
        var running: Int64?
        /// How often the receiver took it.
        var arrivals = 0

        var isDelivered: Bool { attempts.contains { $0.result == .success } }
    }

    let environment: StoreEnvironment
    /// Whether there is a place to post to.
    var hasReceiver: Bool
    private(set) var items: [Item] = []
    private var due = Heap<Due>()

    init(environment: StoreEnvironment, hasReceiver: Bool) {
        self.environment = environment
        self.hasReceiver = hasReceiver
    }

    /// Sends a notification.
    mutating func send(_ origin: Origin, signedDate: Int64, fate: DeliveryFate) -> Int {
        items.append(Item(origin: origin, signedDate: signedDate, fate: fate))
        due.push(Due(date: signedDate + fate.delay, number: items.count - 1))
        return items.count - 1
    }

    /// Notes a notification of the time before, which somebody received.
    mutating func noteDelivered(_ origin: Origin, signedDate: Int64) {
        var item = Item(origin: origin, signedDate: signedDate, fate: DeliveryFate())
        item.attempts = [SendAttempt(date: signedDate, result: .success)]
        item.begun = 1
        items.append(item)
    }

    /// Takes the next notification that is to be posted; nil where none is due.
    ///
    /// Attempts that fail by plan are settled on the way.
    mutating func take(until now: Int64) -> (id: Int, attempt: Int, copies: Int)? {
        while let top = due.first, top.date <= now {
            _ = due.pop()
            let id = top.number
            items[id].begun += 1
            let fate = items[id].fate
            guard hasReceiver, items[id].begun > fate.failures else {
                note(hasReceiver ? fate.failure : .noResponse, of: id, at: top.date)
                continue
            }
            items[id].running = top.date
            let isCopied = fate.losesAnswer && environment == .sandbox
            return (id, items[id].begun, isCopied ? 2 : 1)
        }
        return nil
    }

    /// Whether an attempt is due.
    func isDue(until now: Int64) -> Bool { due.first.map { $0.date <= now } ?? false }

    /// Notes how the attempt went that is under way.
    mutating func settle(_ result: SendAttemptResult, of id: Int) {
        guard items.indices ~= id, let date = items[id].running else { return }
        items[id].running = nil
        if result == .success { items[id].arrivals += 1 }
        let isLost =
            items[id].fate.losesAnswer && items[id].begun == 1 && environment == .production
        note(isLost && result == .success ? .timedOut : result, of: id, at: date)
    }

    private mutating func note(_ result: SendAttemptResult, of id: Int, at date: Int64) {
        items[id].attempts.append(SendAttempt(date: date, result: result))
        let count = items[id].attempts.count
        guard result != .success, count < environment.attemptsMax else { return }
        due.push(Due(date: date + Self.retryHours[count - 1] * Span.hour, number: id))
    }

    /// The first item that was sent at or after an instant.
    func firstIndex(from instant: Int64) -> Int {
        var low = 0
        var high = items.count
        while low < high {
            let middle = (low + high) / 2
            if items[middle].signedDate < instant { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
