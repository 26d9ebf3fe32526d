public import Ledger
internal import Synchronization

/// Asks Apple about one app in one environment.
///
/// It waits for its turn under Apple's limits, signs, sends, reads errors by Apple's numbers, and
/// sends again what Apple lets be sent again. Any number of threads may use one client; they share
/// its limits and its token. It blocks while it waits.
public final class AppStoreClient: Sendable {
    /// Who asks, where and for which app.
    public let access: APIAccess
    /// How much patience it has.
    public let patience: APIPatience
    let surroundings: APISurroundings

    /// What is told of each request that was sent.
    public struct Attempt: Hashable, Sendable {
        /// The endpoint's stable name.
        public var endpoint: String
        /// Which environment was asked.
        public var environment: Environment
        /// `200`, or the word of an error's outcome.
        public var outcome: String
        /// How long it took.
        public var duration: Milliseconds
    }

    /// What all clients that were made of one have in common.
    private final class Limits: Sendable {
        struct State {
            var buckets: [String: TokenBucket] = [:]
            /// Not before these instants Apple wants to be asked again.
            var blockedUntil: [String: Timestamp] = [:]
        }

        let state = Mutex(State())
    }

    private let transport: any Transport
    private let tokens: RequestTokens
    private let observe: @Sendable (Attempt) -> Void
    private let limits: Limits

    /// Makes a client.
    ///
    /// - Parameters:
    ///   - access: who asks, where and for which app.
    ///   - transport: what carries the requests.
    ///   - surroundings: clock, sleep and chance.
    ///   - patience: how long it tries.
    ///   - observe: told of each request that was sent, for metrics.
    public init(
        access: APIAccess,
        transport: any Transport,
        surroundings: APISurroundings,
        patience: APIPatience = APIPatience(),
        observe: @escaping @Sendable (Attempt) -> Void = { _ in }
    ) {
        self.access = access
        self.transport = transport
        self.surroundings = surroundings
        self.patience = patience
        self.observe = observe
        tokens = RequestTokens(key: access.key, bundleID: access.bundleID)
        limits = Limits()
    }

    /// Another one of the same access, token and limits.
    private init(_ client: AppStoreClient, _ patience: APIPatience, _ surroundings: APISurroundings)
    {
        access = client.access
        transport = client.transport
        observe = client.observe
        tokens = client.tokens
        limits = client.limits
        self.patience = patience
        self.surroundings = surroundings
    }

    /// The same client with other patience; both share limits and token.
    ///
    /// - Parameters:
    ///   - attemptsMax: how often one request is sent at most; nil as before.
    ///   - waitMax: how long one request may wait in all; nil as before.
    ///   - surroundings: clock, sleep and chance; nil as before.
    /// - Returns: the client.
    public func with(
        attemptsMax: Int? = nil,
        waitMax: Milliseconds? = nil,
        surroundings: APISurroundings? = nil
    ) -> AppStoreClient {
        AppStoreClient(
            self,
            APIPatience(
                attemptsMax: attemptsMax ?? patience.attemptsMax,
                waitMax: waitMax ?? patience.waitMax,
                share: patience.share
            ),
            surroundings ?? self.surroundings
        )
    }

    /// What part of the requests of an endpoint that may be sent at once is left, 0 to 1.
    ///
    /// Work that can wait looks here first, so that what cannot wait finds room.
    public func headroom(for endpoint: APIEndpoint) -> Double {
        let now = surroundings.now()
        return limits.state.withLock { limits in
            if let until = limits.blockedUntil[endpoint.name], until > now { return 0 }
            var bucket = limits.buckets[endpoint.name] ?? newBucket(endpoint, now)
            return max(0, bucket.level(at: now))
        }
    }

    /// Asks once, or as often as it takes within the patience.
    ///
    /// - Parameters:
    ///   - endpoint: the question.
    ///   - page: which page of a list it is, for messages.
    /// - Returns: the whole answer.
    /// - Throws: `AppStoreAPIError` where there is no usable answer.
    public func send(
        _ endpoint: APIEndpoint,
        page: Int? = nil
    ) throws(AppStoreAPIError) -> APIResponse {
        var run = Run(endpoint: endpoint, page: page)
        let call: APICall
        do {
            call = try endpoint.call(in: access.host.environment, now: surroundings.now())
        } catch {
            var refused = problem(.refusedHere, "not sent: \(error)", run)
            refused.code = error.rule
            throw refused
        }
        while true {
            try waitForTurn(&run)
            run.attempts += 1
            do throws(AppStoreAPIError) {
                return try attempt(call, run)
            } catch {
                var error = error
                error.attempts = run.attempts
                run.mayHaveHadEffect = run.mayHaveHadEffect || error.mayHaveHadEffect
                error.mayHaveHadEffect = run.mayHaveHadEffect
                try pause(after: error, &run)
            }
        }
    }

    /// What is known of a request on its way.
    private struct Run {
        let endpoint: APIEndpoint
        let page: Int?
        var attempts = 0
        var waited = Milliseconds(rawValue: 0)
        var wasReauthorized = false
        var mayHaveHadEffect = false
    }

    private func attempt(_ call: APICall, _ run: Run) throws(AppStoreAPIError) -> APIResponse {
        let start = surroundings.now()
        var headers: [TransportRequest.Header] = [
            .init("Authorization", "Bearer \(tokens.token(now: start))"),
            .init("Accept", "application/json"),
            .init("User-Agent", "subledger"),
        ]
        if call.body != nil { headers.append(.init("Content-Type", "application/json")) }
        let request = TransportRequest(
            method: call.method,
            url: access.host.baseURL + call.target,
            headers: headers,
            body: call.body,
            isRepeatable: run.endpoint.isRepeatable
        )
        let response: TransportResponse
        do {
            response = try transport.send(request)
        } catch {
            var failure = problem(.transport(error.code), "\(error.message)", run)
            failure.mayHaveHadEffect = error.mayHaveArrived
            tell(failure.outcome, run, since: start)
            throw failure
        }
        do throws(AppStoreAPIError) {
            let answer = try read(response, run)
            tell("\(response.status)", run, since: start)
            return answer
        } catch {
            tell(error.outcome, run, since: start)
            throw error
        }
    }

    private func read(
        _ response: TransportResponse,
        _ run: Run
    ) throws(AppStoreAPIError) -> APIResponse {
        let now = surroundings.now()
        guard (200..<300).contains(response.status) else {
            if response.status == 401 {
                let date = HTTPDate.instant(response.header("Date"))
                tokens.refused(now: now, serverDate: date)
            }
            throw AppStoreAPIError(
                response,
                to: run.endpoint,
                asking: access,
                page: run.page,
                now: now
            )
        }
        var answer: APIAnswer?
        if !run.endpoint.answersNothing {
            do { answer = try APIAnswer(response.body) } catch {
                var error = problem(
                    .unreadableAnswer,
                    "HTTP \(response.status) with \(AppStoreAPIError.form(response.body))",
                    run
                )
                error.status = response.status
                error.body = response.body
                error.mayHaveHadEffect = true
                throw error
            }
        }
        return APIResponse(
            endpoint: run.endpoint,
            requestID: newRequestID(),
            bundleID: access.bundleID,
            environment: access.host.environment,
            status: response.status,
            body: response.body,
            answer: answer,
            receivedAt: now,
            page: run.page
        )
    }

    /// Waits after a failure, or throws it where sending again would not help.
    private func pause(
        after error: AppStoreAPIError,
        _ run: inout Run
    ) throws(AppStoreAPIError) {
        if error.kind == .unauthorized, !run.wasReauthorized {
            // A token that was just made may be early for Apple's clock; a kept one may be late.
            run.wasReauthorized = true
            try wait(Milliseconds(rawValue: surroundings.random(200...1000)), for: error, &run)
            return
        }
        if error.status == 429, let retryAt = error.retryAt {
            limits.state.withLock { $0.blockedUntil[run.endpoint.name] = retryAt }
        }
        let mayRepeat = run.endpoint.isRepeatable || !run.mayHaveHadEffect
        guard error.isRetryable, mayRepeat, run.attempts < patience.attemptsMax else {
            throw error
        }
        let bound = Backoff.bound(afterFailures: run.attempts)
        var pause = Milliseconds(rawValue: surroundings.random(0...bound.rawValue))
        if let retryAt = error.retryAt {
            let now = surroundings.now()
            pause = max(pause, Milliseconds(rawValue: retryAt.milliseconds - now.milliseconds))
        }
        try wait(pause, for: error, &run)
    }

    private func waitForTurn(_ run: inout Run) throws(AppStoreAPIError) {
        let now = surroundings.now()
        let name = run.endpoint.name
        let endpoint = run.endpoint
        let pause = limits.state.withLock { limits in
            var bucket = limits.buckets[name] ?? newBucket(endpoint, now)
            let turn = bucket.take(at: now)
            limits.buckets[name] = bucket
            guard let until = limits.blockedUntil[name], until > now else { return turn }
            return max(turn, Milliseconds(rawValue: until.milliseconds - now.milliseconds))
        }
        guard pause.rawValue > 0 else { return }
        var full = problem(
            .outOfPatience,
            "the requests of this hour are used up (a share of \(patience.share) of Apple's limit)",
            run
        )
        full.retryAt = now.adding(pause)
        do {
            try wait(pause, for: full, &run)
        } catch {
            // It was not sent.
            limits.state.withLock { $0.buckets[name]?.giveBack() }
            throw error
        }
    }

    private func wait(
        _ pause: Milliseconds,
        for error: AppStoreAPIError,
        _ run: inout Run
    ) throws(AppStoreAPIError) {
        let total = Milliseconds(rawValue: run.waited.rawValue + pause.rawValue)
        guard total <= patience.waitMax else { throw error }
        run.waited = total
        guard surroundings.sleep(pause) else {
            throw problem(.stopped, "stopped while it waited", run)
        }
    }

    private func problem(
        _ kind: AppStoreAPIError.Kind,
        _ message: String,
        _ run: Run
    ) -> AppStoreAPIError {
        var problem = AppStoreAPIError(
            kind,
            message,
            endpoint: run.endpoint,
            environment: access.host.environment,
            page: run.page
        )
        problem.attempts = run.attempts
        problem.mayHaveHadEffect = run.mayHaveHadEffect
        return problem
    }

    private func newBucket(_ endpoint: APIEndpoint, _ now: Timestamp) -> TokenBucket {
        let limit = endpoint.requestsPerHour(in: access.host.environment)
        return TokenBucket(perHour: Double(limit) * patience.share, at: now)
    }

    private func tell(_ outcome: String, _ run: Run, since start: Timestamp) {
        observe(
            Attempt(
                endpoint: run.endpoint.name,
                environment: access.host.environment,
                outcome: outcome,
                duration: Milliseconds(
                    rawValue: surroundings.now().milliseconds - start.milliseconds
                )
            )
        )
    }

    private func newRequestID() -> String {
        let high = UInt64(bitPattern: surroundings.random(.min ... .max))
        let low = UInt64(bitPattern: surroundings.random(.min ... .max))
        return UniqueID(bits: UInt128(high) << 64 | UInt128(low)).description
    }
}

extension APIEndpoint {
    /// Whether Apple answers with a status alone.
    var answersNothing: Bool {
        switch self {
        case .sendConsumption, .setAppAccountToken: true
        default: false
        }
    }
}
