/// What goes wrong on purpose; equal plans and seeds give equal faults.
public struct FaultPlan: Hashable, Sendable {
    /// The seed of all choices.
    public var seed: UInt64 = 1
    /// What goes wrong with deliveries.
    public var delivery = DeliveryRates()
    /// What goes wrong with requests; every rule whose time has come adds its part, and the first
    /// error counts.
    public var requests: [RequestFault] = []

    /// No faults.
    public init() {}

    /// The shares of notifications that meet with something, each from 0 to 1.
    public struct DeliveryRates: Hashable, Sendable {
        /// Never arrives, however often it is tried.
        public var lost = 0.0
        /// The first attempts fail, so that it comes by the schedule of retries; in the sandbox,
        /// which tries once, it never comes.
        public var late = 0.0
        /// Comes twice: the answer to the first attempt gets lost; in the sandbox the network makes
        /// a copy.
        public var twice = 0.0
        /// Is held up on the way, so that later ones overtake it.
        public var heldUp = 0.0
        /// For how long at most, in simulated milliseconds.
        public var heldUpMax: Int64 = 40 * Span.minute

        /// No faults.
        public init() {}
    }

    /// A rule for requests.
    public struct RequestFault: Hashable, Sendable {
        /// The endpoint; nil for all.
        public var endpoint: StoreEndpoint?
        /// The share of requests that it strikes.
        public var rate = 1.0
        /// How often it strikes still; nil for ever.
        public var times: Int?
        /// Whether it strikes only requests with a pagination token or a revision.
        public var onlyLaterPages = false
        /// What it does.
        public var action: Action

        /// Makes a rule that always strikes.
        public init(_ action: Action, endpoint: StoreEndpoint? = nil, times: Int? = nil) {
            self.action = action
            self.endpoint = endpoint
            self.times = times
        }
    }

    /// What a rule does.
    public enum Action: Hashable, Sendable {
        /// Answers with an error before anything is done.
        case error(Int64)
        /// Does what was asked for and answers with an error all the same.
        case errorAfterwards(Int64)
        /// Does what was asked for and breaks the connection before the answer.
        case loseAnswer
        /// Answers late by up to so many milliseconds of real time; never less than half.
        case latency(Int64)
        /// Refuses the token.
        case unauthorized
    }

    /// Draws the fate of one notification.
    func fate(of id: Int, environment: StoreEnvironment) -> DeliveryFate {
        var random = SeededRandom(seed: seed ^ 0x6661_7465, stream: UInt64(id))
        // Always as many draws, so that one rate does not change what another one strikes.
        let isLost = random.chance(delivery.lost)
        let isLate = random.chance(delivery.late)
        let isTwice = random.chance(delivery.twice)
        let isHeldUp = random.chance(delivery.heldUp)
        let failures = random.weighted([
            (weight: 50.0, choice: 1), (24, 2), (14, 3), (8, 4), (4, 5),
        ])
        let failure = random.weighted([
            (weight: 40.0, choice: SendAttemptResult.timedOut), (20, .socketIssue),
            (20, .noResponse), (10, .tlsIssue), (10, .prematureClose),
        ])
        let delay = random.between(Span.second, max(Span.second, delivery.heldUpMax))
        var fate = DeliveryFate()
        fate.failure = failure
        if isLost || isLate && environment == .sandbox {
            fate.failures = .max
        } else if isLate {
            fate.failures = failures
        } else if isTwice {
            fate.losesAnswer = true
        }
        if isHeldUp { fate.delay = delay }
        return fate
    }
}

extension FaultPlan {
    /// What is wrong with a plan's text.
    public struct Invalid: Error, Hashable, Sendable, CustomStringConvertible {
        /// In words.
        public var description: String
    }

    /// Reads a plan; see the manual of the simulator for its form.
    ///
    /// A name that is not known is refused, so that a slip of the pen does not go unnoticed.
    public init(_ json: WireValue) throws(Invalid) {
        try Self.check(json, "the plan", names: ["seed", "delivery", "requests"])
        if let value = json["seed"] {
            guard let seed = value.number, seed >= 0 else {
                throw Invalid(description: "seed is no whole number")
            }
            self.seed = UInt64(seed)
        }
        if let rates = json["delivery"] {
            try Self.check(
                rates,
                "delivery",
                names: ["lost", "late", "twice", "heldUp", "heldUpSeconds"]
            )
            delivery.lost = try Self.share(rates, "lost")
            delivery.late = try Self.share(rates, "late")
            delivery.twice = try Self.share(rates, "twice")
            delivery.heldUp = try Self.share(rates, "heldUp")
            if let value = rates["heldUpSeconds"] {
                guard let seconds = value.number, 0...8_640_000 ~= seconds else {
                    throw Invalid(description: "heldUpSeconds makes no sense")
                }
                delivery.heldUpMax = seconds * Span.second
            }
        }
        guard let rules = json["requests"] else { return }
        guard let elements = rules.elements else {
            throw Invalid(description: "requests is no array")
        }
        for element in elements { requests.append(try RequestFault(element)) }
    }

    fileprivate static func check(
        _ value: WireValue,
        _ what: String,
        names: Set<String>
    ) throws(Invalid) {
        guard let members = value.members else {
            throw Invalid(description: "\(what) is no object")
        }
        for member in members where !names.contains(member.name) {
            throw Invalid(description: "\(what) has no “\(member.name)”")
        }
    }

    fileprivate static func share(_ value: WireValue, _ name: String) throws(Invalid) -> Double {
        guard let member = value[name] else { return 0 }
        guard let share = member.decimal, 0...1 ~= share else {
            throw Invalid(description: "\(name) is no share from 0 to 1")
        }
        return share
    }
}

extension FaultPlan.RequestFault {
    /// Reads one rule.
    public init(_ json: WireValue) throws(FaultPlan.Invalid) {
        try FaultPlan.check(
            json,
            "a rule for requests",
            names: [
                "endpoint", "rate", "times", "onlyLaterPages", "action", "code", "milliseconds",
            ]
        )
        let code = json["code"]?.number
        let milliseconds = json["milliseconds"]?.number
        switch (json["action"]?.text, code, milliseconds) {
        case ("error", let code?, nil): action = .error(code)
        case ("error_afterwards", let code?, nil): action = .errorAfterwards(code)
        case ("lose_answer", nil, nil): action = .loseAnswer
        case ("latency", nil, let limit?) where 0...600_000 ~= limit: action = .latency(limit)
        case ("unauthorized", nil, nil): action = .unauthorized
        default:
            throw FaultPlan.Invalid(
                description: "action is error or error_afterwards with code, latency with "
                    + "milliseconds, lose_answer or unauthorized"
            )
        }
        if let code, !(400...599 ~= code / 10_000) {
            throw FaultPlan.Invalid(description: "\(code) is none of Apple's error codes")
        }
        if let name = json["endpoint"] {
            guard let endpoint = name.text.flatMap(StoreEndpoint.init) else {
                let names = StoreEndpoint.allCases.map(\.rawValue).joined(separator: ", ")
                throw FaultPlan.Invalid(description: "endpoint is one of \(names)")
            }
            self.endpoint = endpoint
        }
        if json["rate"] != nil { rate = try FaultPlan.share(json, "rate") }
        if let times = json["times"] {
            guard let count = times.number, count >= 0 else {
                throw FaultPlan.Invalid(description: "times is no count")
            }
            self.times = Int(clamping: count)
        }
        onlyLaterPages = json["onlyLaterPages"]?.flag ?? false
    }
}
