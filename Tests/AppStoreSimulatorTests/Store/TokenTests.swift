import AppStoreSimulator
import Crypto
import Testing

/// Whose requests are answered.
@Suite struct StoreTokenTests {
    typealias Edit = @Sendable (inout WireValue) -> Void

    static func authorization(
        _ desk: Desk,
        key: SigningKey = Desk.key,
        header change: Edit = { _ in },
        claims edit: Edit = { _ in }
    ) -> String {
        var header: WireValue = ["alg": "ES256", "kid": "2X9R4HXF34", "typ": "JWT"]
        change(&header)
        let now = desk.wall / 1000
        var claims: WireValue = [
            "iss": "57246542-96fe-1a63-e053-0824d011072a", "iat": .integer(now),
            "exp": .integer(now + 1200), "aud": "appstoreconnect-v1",
            "bid": "com.example.subledger",
        ]
        edit(&claims)
        return "Bearer " + StoreCredentials.token(key: key, header: header, claims: claims)
    }

    static func status(_ desk: inout Desk, _ authorization: String?) -> StoreResponse {
        desk.store.answer(
            StoreRequest(
                method: "GET",
                path: ["inApps", "v1", "subscriptions", "2000000999999000"],
                authorization: authorization
            ),
            at: desk.wall
        )
    }

    /// The reasons that the store noted, by its own statistics.
    static func reasons(_ desk: inout Desk) -> [String: Int64] {
        var reasons: [String: Int64] = [:]
        for member in desk.control("GET", "state").body?["refusedTokens"]?.members ?? [] {
            reasons[member.name] = member.value.number
        }
        return reasons
    }

    @Test func aGoodTokenIsTaken() {
        var desk = Desk.production
        #expect(Self.status(&desk, Self.authorization(desk)).status == 404)
        #expect(Self.status(&desk, desk.authorization).status == 404)
        // Apple's own limit is an hour.
        let hour = Self.authorization(desk) { _ in
        } claims: {
            $0["exp"] = .integer(($0["iat"]?.number ?? 0) + 3600)
        }
        #expect(Self.status(&desk, hour).status == 404)
        #expect(Self.reasons(&desk).isEmpty)
    }

    static let wrong: [(String, Edit, Edit)] = [
        ("wrong_algorithm", { $0["alg"] = "RS256" }, { _ in }),
        ("wrong_algorithm", { $0["alg"] = "none" }, { _ in }),
        ("unknown_key", { $0["kid"] = "ABC" }, { _ in }),
        ("unknown_key", { $0["kid"] = nil }, { _ in }),
        ("wrong_issuer", { _ in }, { $0["iss"] = "somebody" }),
        ("wrong_audience", { _ in }, { $0["aud"] = "appstoreconnect-v2" }),
        ("wrong_bundle", { _ in }, { $0["bid"] = "com.example.other" }),
        ("wrong_bundle", { _ in }, { $0["bid"] = nil }),
        ("malformed", { _ in }, { $0["iat"] = nil }),
        ("malformed", { _ in }, { $0["exp"] = "soon" }),
        ("lives_too_long", { _ in }, { $0["exp"] = .integer(($0["iat"]?.number ?? 0) + 3601) }),
        (
            "from_the_future", { _ in },
            {
                $0["iat"] = .integer(($0["iat"]?.number ?? 0) + 61)
                $0["exp"] = .integer(($0["iat"]?.number ?? 0) + 600)
            }
        ),
        (
            "expired", { _ in },
            {
                $0["exp"] = $0["iat"]
                $0["iat"] = .integer(($0["iat"]?.number ?? 0) - 600)
            }
        ),
    ]

    @Test(arguments: wrong.indices)
    func aWrongTokenIsRefusedWithoutABody(_ index: Int) {
        let (reason, header, claims) = Self.wrong[index]
        var desk = Desk.production
        let answer = Self.status(&desk, Self.authorization(desk, header: header, claims: claims))
        #expect(answer.status == 401 && answer.body == nil)
        #expect(Self.reasons(&desk) == [reason: 1])
    }

    @Test func whatIsNoTokenIsRefused() {
        var desk = Desk.production
        let good = Self.authorization(desk)
        var broken = good
        broken.removeLast(4)
        broken += "AAAA"
        let other = SigningKey(seed: Array("another".utf8))
        let cases: [(String?, String)] = [
            (nil, "missing"), ("Basic abc", "missing"), ("Bearer abc", "malformed"),
            ("Bearer a.b.c", "malformed"), (broken, "bad_signature"),
            (Self.authorization(desk, key: other), "bad_signature"),
        ]
        for (authorization, reason) in cases {
            var fresh = Desk.production
            let answer = Self.status(&fresh, authorization)
            #expect(answer.status == 401 && answer.body == nil)
            #expect(Self.reasons(&fresh) == [reason: 1], "\(authorization ?? "none")")
        }
        #expect(Self.status(&desk, good).status == 404)
    }

    @Test func aServerWhoseClockIsWrongRefuses() {
        for (skew, reason) in [(120_000, "from_the_future"), (-1_300_000, "expired")] {
            // The server's clock lies behind the client's, or ahead of it.
            var desk = Desk(subscriptions: 4) { $0.clockSkew = -Int64(skew) }
            #expect(Self.status(&desk, Self.authorization(desk)).status == 401)
            #expect(Self.reasons(&desk) == [reason: 1])
        }
        var near = Desk(subscriptions: 4) { $0.clockSkew = -50_000 }
        #expect(Self.status(&near, Self.authorization(near)).status == 404)
    }
}
