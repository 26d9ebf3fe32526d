internal import Crypto
public import Ledger
internal import Synchronization

/// The signed tokens that say who asks.
///
/// A token lives for 15 minutes and is used again until three minutes are left, so that a request
/// that waits is not overtaken by its end; a long run gets new ones on the way.
public final class RequestTokens: Sendable {
    /// How long a token is taken from now on.
    static let lifetime = Milliseconds.minutes(15)
    /// How far its beginning is set back, since clocks differ.
    static let backdated = Milliseconds.minutes(1)
    /// With less than this left, a new one is made.
    static let margin = Milliseconds.minutes(3)
    /// From which difference on Apple's clock is taken instead of ours.
    static let skewMin = Milliseconds(rawValue: 30_000)

    private struct State {
        var token: String?
        var usableUntil = Timestamp.earliest
        /// What Apple's clock is ahead of ours, where it was found to be too much.
        var offset: Int64 = 0
    }

    private let key: APIKey
    private let bundleID: String
    private let state = Mutex(State())

    /// Makes tokens of one key for one app.
    public init(key: APIKey, bundleID: String) {
        self.key = key
        self.bundleID = bundleID
    }

    /// A token that is good for some minutes.
    public func token(now: Timestamp) -> String {
        state.withLock { state in
            let appleNow = now.adding(Milliseconds(rawValue: state.offset))
            // A clock that was set back by hours must not make a token out of one of later.
            let isUsable =
                appleNow < state.usableUntil
                && appleNow.adding(Self.lifetime) >= state.usableUntil
            if let token = state.token, isUsable { return token }
            let token = Self.signed(key: key, bundleID: bundleID, now: appleNow)
            state.token = token
            state.usableUntil = appleNow.adding(
                Milliseconds(rawValue: Self.lifetime.rawValue - Self.margin.rawValue)
            )
            return token
        }
    }

    /// Throws a token away that Apple refused, and goes by Apple's clock where ours is wrong.
    func refused(now: Timestamp, serverDate: Timestamp?) {
        state.withLock { state in
            state.token = nil
            guard let serverDate else { return }
            let offset = serverDate.milliseconds - now.milliseconds
            state.offset = abs(offset) >= Self.skewMin.rawValue ? offset : 0
        }
    }

    /// Signs a token.
    static func signed(key: APIKey, bundleID: String, now: Timestamp) -> String {
        let issuedAt = now.adding(Milliseconds(rawValue: -backdated.rawValue)).milliseconds / 1000
        let expires = now.adding(lifetime).milliseconds / 1000
        let header = "{\"alg\":\"ES256\",\"kid\":\(JSONQuoting.quoted(key.keyID)),\"typ\":\"JWT\"}"
        let claims =
            "{\"iss\":\(JSONQuoting.quoted(key.issuerID)),\"iat\":\(issuedAt),\"exp\":\(expires),"
            + "\"aud\":\"appstoreconnect-v1\",\"bid\":\(JSONQuoting.quoted(bundleID))}"
        let token = key.signingKey.signCompactJWS(
            headerAndDot: Base64URL.encodeBytes(Array(header.utf8)) + [UInt8(ascii: ".")],
            payload: Array(claims.utf8)
        )
        return String(decoding: token, as: UTF8.self)
    }
}
