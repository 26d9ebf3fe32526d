import AppStore
import AppStoreSimulator
import EventLog
import Ledger
import LedgerService
import Postgres
import TestSupport

/// Signed lines of a made-up app, and a database to read them into.
struct IngestSample {
    static let bundleID = "com.example.subledger"
    /// Later than everything that is signed here.
    static let now = Timestamp(milliseconds: 1_800_000_000_000)

    /// Issuing certificates takes longer than everything else here.
    private static let authority = TestCertificateAuthority()

    let signer = NoticeSigner(authority: authority)
    let database: TestDatabase

    init(on server: TestServer = .shared) throws {
        database = try TestDatabase.create(template: "ledger", on: server) { connection in
            try Migrator(connection, extra: ReadModels.migrations).migrate()
        }
    }

    /// A chain with its first purchase.
    func chain(_ number: Int, bundleID: String = Self.bundleID) -> Chain {
        Chain(
            originalTransactionID: "\(2_000_000_000_000_000 + number)",
            originalPurchaseDate: 1_700_000_000_000 + Int64(number) * 1000,
            bundleID: bundleID
        )
    }

    /// A UUID with a number in it.
    func uuid(_ number: Int) -> String {
        let digits = String(number)
        return "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count)
            + digits
    }

    /// The first purchase of a chain, signed; `change` edits the envelope before.
    func purchase(
        _ number: Int,
        bundleID: String = Self.bundleID,
        change: (inout WireValue) -> Void = { _ in }
    ) -> [UInt8] {
        let chain = chain(number, bundleID: bundleID)
        return signer.sign(
            .initialBuy(of: chain, uuid: uuid(number)),
            of: chain,
            changingEnvelope: change
        )
    }

    /// Signs any payload.
    func sign(_ payload: WireValue) -> [UInt8] {
        signer.authority.signer(at: 1_700_000_000_000).sign(payload)
    }

    /// The verifier that accepts the app.
    func verifier() throws -> Verifier {
        var anchors = TrustAnchors()
        try anchors.add(signer.authority.rootDER, name: "test root")
        let app = AcceptedApp(
            bundleID: Self.bundleID,
            appAppleID: nil,
            environments: [.sandbox]
        )
        return Verifier(anchors: anchors, apps: [app])
    }

    /// What reading lines came to, with the refused ones.
    func ingest(
        _ lines: [[UInt8]],
        connect: (() throws -> Connection)? = nil
    ) throws -> (report: IngestReport, refused: [RefusedLine]) {
        let folder = try ScratchFolder()
        let reader = try LineReader(
            path: folder.file("lines", lines.joined(separator: [UInt8(ascii: "\n")]))
        )
        let database = database
        let ingest = Ingest(
            verifier: try verifier(),
            connect: connect ?? { try database.connect() }
        )
        var refused: [RefusedLine] = []
        var listener = Ingest.Listener()
        listener.refused = { refused.append($0) }
        let report = try ingest.run(reader, now: Self.now, listener: listener)
        return (report, refused)
    }

    /// One number that a query gives.
    func count(_ sql: String) throws -> Int64? { try database.connect().query(sql).int(0, 0) }
}
