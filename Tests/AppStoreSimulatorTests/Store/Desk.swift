import AppStoreSimulator
import Crypto
import Testing

/// A fake App Store and a client at its desk, who has a key and a watch.
struct Desk {
    static let key = SigningKey(seed: Array("desk".utf8))
    static let opening: Int64 = 1_767_225_600_000
    static let day: Int64 = 86_400_000
    static let hour: Int64 = 3_600_000

    static let credentials = StoreCredentials(
        issuerID: "57246542-96fe-1a63-e053-0824d011072a",
        keyID: "2X9R4HXF34",
        key: key.public
    )

    var store: FakeAppStore
    /// The real instant.
    var wall: Int64 = 1_790_000_000_000

    /// Opened once, since drawing lives takes a while.
    static let production = Desk()
    static let sandbox = Desk(environment: .sandbox)

    init(
        environment: StoreEnvironment = .production,
        subscriptions: Int = 240,
        seed: UInt64 = 11,
        _ change: (inout FakeAppStore.Options) -> Void = { _ in }
    ) {
        var options = FakeAppStore.Options(
            environment: environment,
            subscriptions: subscriptions,
            seed: seed,
            opening: Self.opening,
            credentials: Self.credentials
        )
        options.rareFactor = 4
        options.hasReceiver = true
        change(&options)
        store = FakeAppStore(options)
    }

    var authorization: String {
        "Bearer "
            + Self.credentials.token(
                key: Self.key,
                bundleID: store.options.bundleID,
                atSeconds: wall / 1000
            )
    }

    /// Asks, with a good token.
    mutating func ask(
        _ method: String,
        _ path: String,
        _ query: [(String, String)] = [],
        body: WireValue? = nil
    ) -> StoreResponse {
        let request = StoreRequest(
            method: method,
            path: path.split(separator: "/").map(String.init),
            query: query.map { (name: $0.0, value: $0.1) },
            authorization: authorization,
            body: body?.bytes ?? []
        )
        return store.answer(request, at: wall)
    }

    mutating func get(_ path: String, _ query: [(String, String)] = []) -> StoreResponse {
        ask("GET", path, query)
    }

    /// Apple's error of an answer; 0 where it is none.
    mutating func error(
        _ method: String,
        _ path: String,
        _ query: [(String, String)] = [],
        body: WireValue? = nil
    ) -> Int64 {
        let response = ask(method, path, query, body: body)
        let code = response.body?["errorCode"]?.number ?? 0
        if code != 0 { #expect(Int64(response.status) == code / 10_000) }
        return code
    }

    mutating func control(
        _ method: String,
        _ path: String,
        body: WireValue? = nil
    )
        -> StoreResponse
    {
        let parts = path.split(separator: "?", maxSplits: 1).map(String.init)
        let query = (parts.count > 1 ? parts[1] : "").split(separator: "&").map { item in
            let sides = item.split(separator: "=").map(String.init)
            return (name: sides[0], value: sides[1])
        }
        return store.control(
            StoreRequest(
                method: method,
                path: parts[0].split(separator: "/").map(String.init),
                query: query,
                body: body?.bytes ?? []
            )
        )
    }

    /// Posts all that is due by now and answers each with what the closure says.
    @discardableResult
    mutating func deliver(
        _ receive: (WireValue) -> SendAttemptResult = { _ in .success }
    ) -> [WireValue] {
        var arrived: [WireValue] = []
        while let dispatches = store.takeDispatch() {
            for dispatch in dispatches {
                let notice = Self.notice(dispatch.body)
                let result = receive(notice)
                if result == .success { arrived.append(notice) }
                store.record(result, of: dispatch)
            }
        }
        return arrived
    }

    /// The first subscription of that kind.
    func first(
        where isWanted: (FakeAppStore.Overview) -> Bool,
        _ place: SourceLocation = #_sourceLocation
    ) throws -> FakeAppStore.Overview {
        let found = store.overviews.first(where: isWanted)
        return try #require(found, sourceLocation: place)
    }

    /// One that can be extended for the first time.
    func extendable() throws -> FakeAppStore.Overview {
        try first { $0.extensionError == nil && $0.extensionsUsed == 0 }
    }

    func overview(_ id: String) throws -> FakeAppStore.Overview {
        try #require(store.overview(of: id))
    }

    // MARK: - Reading what is signed

    /// The payload of a compact JWS.
    static func payload(_ jws: String) -> WireValue? {
        let parts = jws.split(separator: ".")
        guard parts.count == 3 else { return nil }
        return Base64URL.decode(String(parts[1])).flatMap { WireValue(reading: $0) }
    }

    static func payload(_ value: WireValue?) throws -> WireValue {
        let text = try #require(value?.rawText)
        return try #require(payload(text))
    }

    /// The payload of a notification as it is posted.
    static func notice(_ body: [UInt8]) -> WireValue {
        WireValue(reading: body)?["signedPayload"]?.text.flatMap { payload($0) } ?? .null
    }
}

extension SigningKey {
    /// The public half.
    var `public`: PublicKey {
        guard let key = PublicKey(publicKeyInfo: publicKeyInfo) else {
            preconditionFailure("a key that was made cannot be read")
        }
        return key
    }
}

extension WireValue {
    /// The text of a string, also of one that was written raw.
    var rawText: String? {
        guard case .raw(let text) = self else { return self.text }
        return String(text.dropFirst().dropLast())
    }
}
