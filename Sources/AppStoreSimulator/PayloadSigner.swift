public import Crypto

/// Signs payloads as compact JWS under one header.
public struct PayloadSigner: Sendable {
    /// The key of the leaf certificate.
    public var key: SigningKey
    /// The base64url text of the header and the dot after it.
    private var prefix: [UInt8]

    /// Makes a signer whose header is Apple's: `alg` ES256 and the chain in `x5c`, leaf first.
    public init(key: SigningKey, chain: [[UInt8]]) {
        let x5c = chain.map { WireValue.string(Base64.encode($0)) }
        self.init(key: key, header: ["alg": "ES256", "x5c": .array(x5c)])
    }

    /// Makes a signer with any header.
    public init(key: SigningKey, header: WireValue) {
        self.key = key
        prefix = Base64URL.encodeBytes(header.bytes) + [UInt8(ascii: ".")]
    }

    /// The compact JWS of a payload.
    public func sign(_ payload: WireValue) -> [UInt8] { sign(bytes: payload.bytes) }

    /// The compact JWS of any payload bytes, JSON or not.
    public func sign(bytes payload: [UInt8]) -> [UInt8] {
        key.signCompactJWS(headerAndDot: prefix, payload: payload)
    }

    /// The compact JWS as a JSON string, for use inside another payload.
    ///
    /// It is raw, since nothing in a JWS needs an escape and looking for that takes as long as
    /// signing.
    public func text(_ payload: WireValue) -> WireValue {
        .raw("\"" + String(decoding: sign(payload), as: UTF8.self) + "\"")
    }
}
