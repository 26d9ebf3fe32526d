/// A fake App Store: subscribers whose lives go on by a simulated clock, Apple's Server API about
/// them, and the notifications that are due.
///
/// It is a value that does no I/O: whoever binds it to HTTP hands it requests and the time, and
/// posts what is to be posted. There are two clocks. The simulated one is that of the lives, of
/// signatures and of the schedule of retries, and only moves when it is told to. The other one is
/// the real one of clients: request tokens, rate limits and `Retry-After` are judged by it.
public struct FakeAppStore: Sendable {
    /// What a fake App Store is.
    public struct Options: Sendable {
        /// Its environment.
        public var environment: StoreEnvironment
        /// How many subscriptions, future ones included.
        public var subscriptions: Int
        /// Equal seeds give equal lives and equal faults.
        public var seed: UInt64
        /// The simulated instant at which it opens, ms since 1970.
        public var opening: Int64
        /// The key that clients sign with.
        public var credentials: StoreCredentials
        /// How many years of lives lie before the opening.
        public var yearsBefore = 2
        /// How many days of lives lie behind it; then the scripts are over.
        public var daysAfter: Int64 = 400
        /// How much more often than by nature rare things happen.
        public var rareFactor = 1.0
        /// The app.
        public var bundleID = "com.example.subledger"
        /// The app's id; in the sandbox it is never sent.
        public var appAppleID: Int64 = 1_234_567_890
        /// Whether notifications have a place to go to.
        public var hasReceiver = false
        /// Apple's hourly limits are multiplied by this.
        public var rateFactor = 1.0
        /// How long a pagination token lives, in milliseconds of real time.
        public var pageLife: Int64 = Span.hour
        /// How long a mass extension takes, in simulated milliseconds.
        public var massDuration: Int64 = 2 * Span.hour
        /// By how much the server's real clock is ahead of the true one, in milliseconds.
        public var clockSkew: Int64 = 0
        /// The app's shared secret, which verifyReceipt asks for.
        public var sharedSecret = "0123456789abcdef0123456789abcdef"
        /// What goes wrong.
        public var faults = FaultPlan()

        /// Makes options.
        public init(
            environment: StoreEnvironment = .production,
            subscriptions: Int,
            seed: UInt64 = 1,
            opening: Int64,
            credentials: StoreCredentials
        ) {
            precondition(subscriptions >= 0)
            self.environment = environment
            self.subscriptions = subscriptions
            self.seed = seed
            self.opening = opening
            self.credentials = credentials
        }

        /// The beginning of the lives.
        var from: Int64 { opening - Int64(yearsBefore) * 365 * Span.day }
        /// Their end.
        var until: Int64 { opening + daysAfter * Span.day }
        /// The environments share nothing, least of all ids.
        var firstNumber: Int { environment == .production ? 0 : 4_000_000 }
    }

    /// The years that its certificates cover, 2022 to 2031: it opens two years after their beginning
    /// at the earliest, and its scripts end before theirs.
    public static let signingTime: Range<Int64> = 1_640_995_200_000..<1_956_528_000_000

    /// What it is.
    public let options: Options
    /// Whose certificates sign; a client has to trust its root.
    public let authority: TestCertificateAuthority
    /// The simulated instant.
    public private(set) var now: Int64

    var subscribers: [Subscriber] = []
    /// The subscriptions of each customer, by `appTransactionId`.
    var customers: [String: [Int]] = [:]
    /// When the next notice of a subscription is due.
    var agenda = Heap<Due>()
    var outbox: Outbox
    /// Notices that are about no subscription.
    var appNotices: [Notice] = []
    /// Test notifications by their tokens.
    var tests: [String: Int] = [:]
    /// Every extension, granted or not.
    public internal(set) var extensions: [ExtensionEntry] = []
    /// Entries of the extension that is being granted, to be written behind it.
    var pendingFollowers: [ExtensionEntry] = []
    /// When a customer's subscriptions were extended, by `appTransactionId`.
    var granted: [String: [Int64]] = [:]
    /// The places of the extensions that were granted on request.
    var grants: [GrantKey: Int] = [:]
    var massRequests: [MassRequest] = []
    var massAgenda = Heap<Due>()
    /// The news that did not come from a script.
    var ownNews: Set<String> = []
    /// What was told about consumption.
    public internal(set) var consumptions: [ConsumptionEntry] = []
    var rates: RateBook
    var faults: FaultPlan
    var faultRandom: SeededRandom
    var random: SeededRandom
    var statistics = StoreStatistics()

    /// Opens a fake App Store; what lies before its opening has come to pass.
    public init(_ options: Options) {
        self.options = options
        // Its time is not that of the lives, so that the root stays the same for a seed.
        authority = TestCertificateAuthority(
            seed: options.seed,
            from: Self.signingTime.lowerBound,
            until: Self.signingTime.upperBound
        )
        now = options.from
        outbox = Outbox(environment: options.environment, hasReceiver: options.hasReceiver)
        rates = RateBook(environment: options.environment, factor: options.rateFactor)
        faults = options.faults
        faultRandom = Self.faultRandom(options.faults)
        random = SeededRandom(seed: options.seed, stream: 0x7374_6F72_6500)
        subscribers.reserveCapacity(options.subscriptions)
        for place in 0..<options.subscriptions {
            let subscriber = Self.subscriber(options.firstNumber + place, options)
            if let date = subscriber.nextDate { agenda.push(Due(date: date, number: place)) }
            customers[subscriber.chain.appTransactionID, default: []].append(place)
            subscribers.append(subscriber)
        }
        move(to: options.opening)
    }

    private static func subscriber(_ number: Int, _ options: Options) -> Subscriber {
        let life = Life(
            number: number,
            seed: options.seed,
            from: options.from,
            until: options.until,
            rareFactor: options.rareFactor
        )
        let household = Household(
            of: number,
            seed: options.seed,
            rareFactor: options.rareFactor
        )
        let isMember = ["FAMILY_SHARED", "ASSIGNED"].contains(life.chain.ownership)
        return Subscriber(
            life,
            number: number,
            chain: options.placed(life.chain),
            payer: isMember ? household.leader : nil
        )
    }

    static func faultRandom(_ plan: FaultPlan) -> SeededRandom {
        SeededRandom(seed: plan.seed, stream: 0x7265_7175)
    }

    /// A new random UUID; equal seeds and equal requests give equal ones.
    mutating func uuid() -> String { LifeWriter.uuid(&random) }

    // MARK: - Time

    /// Moves the simulated clock; it never goes back.
    public mutating func move(to instant: Int64) {
        while true {
            let notice = agenda.first?.date ?? .max
            let mass = massAgenda.first?.date ?? .max
            guard min(notice, mass) <= instant else { break }
            now = max(now, min(notice, mass))
            if notice <= mass { stepLife() } else { stepMassRequest() }
        }
        now = max(now, instant)
        // Without a place to go to every attempt fails at once.
        if !outbox.hasReceiver { _ = outbox.take(until: now) }
    }

    private mutating func stepLife() {
        // An entry that a change from outside has made void names another instant.
        guard let due = agenda.pop(), subscribers[due.number].nextDate == due.date else { return }
        let place = subscribers[due.number].next
        let isExtension = subscribers[due.number].notices[place].type == "RENEWAL_EXTENDED"
        let before = isExtension ? subscribers[due.number].standing(at: due.date).current : nil
        let notice = subscribers[due.number].step()
        if let date = subscribers[due.number].nextDate {
            agenda.push(Due(date: date, number: due.number))
        }
        guard notice.form != .answer else { return }
        if isExtension, !ownNews.contains(notice.uuid) {
            noteScripted(notice, of: due.number, before: before)
        }
        let origin = Outbox.Origin.subscription(due.number, place)
        if now < options.opening {
            outbox.noteDelivered(origin, signedDate: notice.signedDate)
        } else {
            send(origin, signedDate: notice.signedDate)
        }
    }

    /// Sends a notification to its fate.
    @discardableResult
    mutating func send(_ origin: Outbox.Origin, signedDate: Int64) -> Int {
        let fate = faults.fate(of: outbox.items.count, environment: options.environment)
        return outbox.send(origin, signedDate: signedDate, fate: fate)
    }

    // MARK: - Requests

    /// Answers a request of the Server API.
    ///
    /// Every request moves the simulated clock by a millisecond at least, so that whatever is signed
    /// for it is newer than what was signed before.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - wall: the real instant, ms since 1970.
    /// - Returns: the answer.
    public mutating func answer(_ request: StoreRequest, at wall: Int64) -> StoreResponse {
        move(to: now + 1)
        if request.method == "POST", request.path == Self.receiptPath {
            return verifyReceipt(request)
        }
        let wall = wall + options.clockSkew
        guard let (endpoint, names) = StoreEndpoint.find(request.method, request.path) else {
            statistics.unknownPaths += 1
            return StoreResponse(status: 404)
        }
        var response = answer(request, endpoint, names, at: wall)
        statistics.requests[endpoint, default: [:]][response.status, default: 0] += 1
        if response.status == 429, response.retryAfter == nil {
            response.retryAfter = wall + 2 * Span.second
        }
        return response
    }

    private mutating func answer(
        _ request: StoreRequest,
        _ endpoint: StoreEndpoint,
        _ names: [String],
        at wall: Int64
    ) -> StoreResponse {
        let refusal = options.credentials.refusal(
            request.authorization,
            bundleID: options.bundleID,
            atSeconds: wall / 1000
        )
        if let refusal {
            statistics.refusedTokens[refusal, default: 0] += 1
            return StoreResponse(status: 401)
        }
        let faults = strike(endpoint, request)
        if faults.contains(.unauthorized) { return StoreResponse(status: 401) }
        if let retryAfter = rates.count(endpoint, at: wall) {
            var response = StoreResponse(StoreError.rateLimitExceeded)
            response.retryAfter = retryAfter
            return response
        }
        var response: StoreResponse?
        for case .error(let code) in faults where response == nil {
            response = StoreResponse(StoreError(code))
        }
        let known = extensions.count
        var answer = response ?? perform(endpoint, request, names, at: wall)
        for fault in faults {
            switch fault {
            case .errorAfterwards(let code): answer = StoreResponse(StoreError(code))
            case .loseAnswer: answer.isLost = true
            case .latency(let most):
                answer.delayMilliseconds += faultRandom.between(most / 2, most)
            case .error, .unauthorized: continue
            }
            if case .latency = fault { continue }
            for place in known..<extensions.count { extensions[place].isAnswerLost = true }
        }
        return answer
    }

    private mutating func perform(
        _ endpoint: StoreEndpoint,
        _ request: StoreRequest,
        _ names: [String],
        at wall: Int64
    ) -> StoreResponse {
        do throws(StoreError) {
            switch endpoint {
            case .statuses: return try statuses(names[0], request)
            case .transaction: return try transactionInfo(names[0])
            case .history: return try history(names[0], request)
            case .refunds: return try refundHistory(names[0], request)
            case .order: return try order(names[0])
            case .extend: return extend(names[0], request)
            case .massExtend: return massExtend(request)
            case .massStatus: return try massStatus(names[0], names[1])
            case .testRequest: return try requestTest(at: wall)
            case .testStatus: return try testStatus(names[0])
            case .notifications: return try notificationHistory(request, at: wall)
            case .consumption: return try sendConsumption(names[0], request)
            case .accountToken: return try setAccountToken(names[0], request)
            case .appTransaction: return try appTransactionInfo(names[0])
            }
        } catch {
            return StoreResponse(error)
        }
    }

    /// What the plan does to a request.
    private mutating func strike(
        _ endpoint: StoreEndpoint,
        _ request: StoreRequest
    ) -> [FaultPlan.Action] {
        var actions: [FaultPlan.Action] = []
        for place in faults.requests.indices {
            let rule = faults.requests[place]
            guard rule.endpoint == nil || rule.endpoint == endpoint, rule.times != 0 else {
                continue
            }
            let isLaterPage =
                request.value("paginationToken") != nil || request.value("revision") != nil
            guard isLaterPage || !rule.onlyLaterPages, faultRandom.chance(rule.rate) else {
                continue
            }
            faults.requests[place].times = rule.times.map { $0 - 1 }
            actions.append(rule.action)
        }
        return actions
    }

    // MARK: - Deliveries

    /// Whether notifications have a place to go to; without one every attempt fails.
    public var hasReceiver: Bool {
        get { outbox.hasReceiver }
        set { outbox.hasReceiver = newValue }
    }

    /// Takes the next notification that is to be posted by now; nil where none is.
    ///
    /// Whoever takes one tells by `record` how it went. The two of a copy have the same bytes.
    public mutating func takeDispatch() -> [Dispatch]? {
        guard let (id, attempt, copies) = outbox.take(until: now) else { return nil }
        let body = NoticeSigner.line(payload(of: id))
        return (0..<copies).map {
            Dispatch(id: id, attempt: attempt, isCopy: $0 > 0, body: body)
        }
    }

    /// Whether nothing is due to be posted now; what is under way is not.
    public var isQuiet: Bool { !outbox.isDue(until: now) }

    /// Notes how an attempt went.
    public mutating func record(_ result: SendAttemptResult, of dispatch: Dispatch) {
        if !dispatch.isCopy { outbox.settle(result, of: dispatch.id) }
    }

    /// The notification as it is signed; the same bytes every time.
    func payload(of id: Int) -> [UInt8] {
        let signer = NoticeSigner(authority: authority)
        switch outbox.items[id].origin {
        case .subscription(let number, let place):
            let subscriber = subscribers[number]
            return signer.sign(subscriber.notices[place], of: subscriber.chain)
        case .app(let place): return signer.sign(appNotices[place], of: options.appChain)
        }
    }

    /// The content of a notification.
    func notice(of id: Int) -> Notice {
        switch outbox.items[id].origin {
        case .subscription(let number, let place): subscribers[number].notices[place]
        case .app(let place): appNotices[place]
        }
    }
}

extension FakeAppStore.Options {
    /// A chain in this app and environment.
    func placed(_ chain: Chain) -> Chain {
        var chain = chain
        chain.environment = environment.rawValue
        chain.bundleID = bundleID
        chain.appAppleID = environment == .production ? appAppleID : nil
        return chain
    }

    /// Stands for the app, where no subscription is spoken of.
    var appChain: Chain {
        placed(Chain(originalTransactionID: "", originalPurchaseDate: from))
    }
}
