internal import AppStoreSimulator
internal import Crypto
internal import Glibc
internal import HTTP
internal import Postgres
internal import SimulatorServer

/// The folder in which a fake App Store keeps what its clients need.
///
/// Keys are made once: a client that trusts them need not be told again at the next start.
struct SimulatorFiles {
    static let issuerID = "57246542-96fe-1a63-e053-0824d011072a"
    static let keyID = "SIMULATED1"

    private let folder: String
    private let key: SigningKey
    private let keyPath: String

    /// Takes the client's key from a file, or that of the folder, which is made where it is missing.
    init(folder: String, key path: String?) throws(CommandFailure) {
        self.folder = folder
        if let path {
            guard let text = FileSystem.text(path, limitBytes: 1 << 16),
                let key = SigningKey(pem: text), key.curve == .p256
            else { throw .input("\(path) is no P-256 private key in PEM, such as Apple's .p8") }
            self.key = key
            keyPath = path
            return
        }
        // As Apple names the keys for purchases; our own client warns of the other kind.
        keyPath = "\(folder)/SubscriptionKey_\(Self.keyID).p8"
        key = try Self.key(keyPath)
    }

    /// Reads a key, or makes one where there is none.
    private static func key(_ path: String) throws(CommandFailure) -> SigningKey {
        if let text = FileSystem.text(path, limitBytes: 1 << 16) {
            guard let key = SigningKey(pem: text), key.curve == .p256 else {
                throw .input("\(path) is no P-256 private key; remove it and start again")
            }
            return key
        }
        let key = SigningKey.generateP256()
        try write(key.pem, to: path, mode: 0o600)
        return key
    }

    private static func write(
        _ text: String,
        to path: String,
        mode: mode_t
    ) throws(CommandFailure) {
        let file = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
        let bytes = Array(text.utf8)
        guard file >= 0, unsafe Glibc.write(file, bytes, bytes.count) == bytes.count else {
            throw .input("cannot write \(path): \(unsafe String(cString: strerror(errno)))")
        }
        close(file)
    }

    /// Writes a file of the folder that anybody may read.
    func write(_ name: String, _ text: String) throws(CommandFailure) {
        try Self.write(text, to: "\(folder)/\(name)", mode: 0o644)
    }

    /// The registered key.
    func credentials() throws(CommandFailure) -> StoreCredentials {
        guard let publicKey = PublicKey(publicKeyInfo: key.publicKeyInfo) else {
            throw .input("\(keyPath) has no usable public half")
        }
        return StoreCredentials(issuerID: Self.issuerID, keyID: Self.keyID, key: publicKey)
    }

    /// A certificate of the folder's authority, for the names by which this machine is called.
    func identity(_ address: IPAddress) throws(CommandFailure) -> TLSIdentity {
        var addresses: [[UInt8]] = [
            [127, 0, 0, 1], [UInt8](repeating: 0, count: 15) + [1],
        ]
        let parts = address.description.split(separator: ".").compactMap { UInt8($0) }
        if address.isIPv4, parts.count == 4, parts != [0, 0, 0, 0] { addresses.append(parts) }
        var name = [CChar](repeating: 0, count: 256)
        _ = unsafe gethostname(&name, 255)
        let host = String(decoding: name.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
        let tls = SimulatorTLS(
            names: ["localhost", host, "host.docker.internal"].filter { !$0.isEmpty },
            addresses: addresses,
            atSeconds: Int64(time(nil)),
            authorityKey: try Self.key("\(folder)/tls-ca.key")
        )
        try write("tls-ca.pem", tls.authorityPEM)
        return tls.identity
    }

    /// Writes what a client needs to know.
    func describe(
        _ urls: [(StoreEnvironment, String)],
        bundleID: String
    ) throws(CommandFailure) {
        var members = urls.map {
            WireMember($0.0 == .production ? "production" : "sandbox", .string($0.1))
        }
        members.append(WireMember("issuerId", .string(Self.issuerID)))
        members.append(WireMember("keyId", .string(Self.keyID)))
        members.append(WireMember("keyFile", .string(keyPath)))
        members.append(WireMember("bundleId", .string(bundleID)))
        members.append(WireMember("appAppleId", .integer(1_234_567_890)))
        members.append(WireMember("tlsAuthority", .string("\(folder)/tls-ca.pem")))
        members.append(WireMember("signatureRoot", .string("\(folder)/root.pem")))
        let text = String(decoding: WireValue.object(members).bytes, as: UTF8.self)
        try write("appstore.json", text + "\n")
    }
}
