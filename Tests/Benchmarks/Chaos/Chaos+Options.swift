extension Chaos {
    /// What is done to the service while it is under load.
    public enum Scenario: String, CaseIterable, Sendable {
        /// The service is killed and PostgreSQL stopped at once, at random, also both.
        case kills
        /// A snapshot stays open all the while; only the service is killed.
        case snapshot
        /// As `kills`, and the clock jumps an hour ahead and back.
        case clock
        /// As `kills` under a flood for Sandbox; before that, how long Production waits in it.
        case sandbox
        /// As `kills` while files are imported; before that, how long deliveries wait.
        case importing = "import"
    }

    /// What to do, and how long.
    public struct Options: Sendable {
        /// What is done to the service.
        public var scenario: Scenario
        /// How long the load lasts, in seconds.
        public var seconds: Int
        /// Equal seeds give equal notifications and an equal plan of faults.
        public var seed: UInt64
        /// How many notifications Apple sends in a second.
        public var perSecond = 400
        /// How many services share the database.
        public var instances = 2
        /// How many deliveries are under way at once.
        public var senders = 24
        /// Whether PostgreSQL's clock jumps too, in the scenario `clock`.
        public var stepsServerClock = false
        /// How many Sandbox deliveries a second the flood tries.
        public var floodPerSecond = 5000
        /// The built program.
        public var program: String
        /// Whether the folder with everything in it is kept.
        public var keepsFolder = false

        /// Makes options.
        public init(scenario: Scenario, seconds: Int, seed: UInt64, program: String) {
            self.scenario = scenario
            self.seconds = seconds
            self.seed = seed
            self.program = program
        }
    }

    /// What a run came to.
    public struct Report: Sendable {
        /// What happened, one line for a person each.
        public var lines: [String] = []
        /// Every promise that was broken; empty when all were kept.
        public var violations: [String] = []
    }
}

/// Equal seeds give equal numbers (SplitMix64).
struct ChaosRandom {
    private var state: UInt64

    init(seed: UInt64, stream: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 ^ (stream << 32) }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    /// A number from 0 up to but not including `bound`.
    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

    mutating func between(_ low: Int, _ high: Int) -> Int { low + below(high - low + 1) }

    mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
}
