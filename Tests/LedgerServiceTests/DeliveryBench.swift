import AppStore
import AppStoreSimulator
import Dispatch
import EventLog
import Ledger
import Synchronization
import TestSupport

@testable import LedgerService

/// A webhook over a database of its own, without HTTP around it, for the cases of other people's
/// reports.
struct DeliveryBench {
    let sample: IngestSample
    let committer: Committer
    let refusals: RefusalBook
    let webhook: Webhook

    /// Makes one; the sample's verifier and a session to its database are what is used unless said
    /// otherwise.
    init(
        verifier: Verifier? = nil,
        committer: Committer? = nil,
        sample: IngestSample? = nil,
        now: Timestamp = IngestSample.now
    ) throws {
        let sample = try sample ?? IngestSample()
        let database = sample.database
        self.sample = sample
        self.committer = committer ?? Committer { try database.connect() }
        refusals = RefusalBook { try database.connect() }
        webhook = Webhook(
            verifier: try verifier ?? sample.verifier(),
            committer: self.committer,
            refusals: refusals,
            now: { now }
        )
    }

    /// Delivers what Apple would post with a signed payload.
    func deliver(_ signedPayload: [UInt8]) -> Webhook.Answer? {
        deliver(body: Array("{\"signedPayload\":\"".utf8) + signedPayload + Array("\"}".utf8))
    }

    /// Delivers a body and waits for the answer.
    func deliver(body: [UInt8]) -> Webhook.Answer? {
        let given = Mutex<Webhook.Answer?>(nil)
        let isAnswered = DispatchSemaphore(value: 0)
        webhook.receive(body, from: "192.0.2.1") { answer in
            given.withLock { $0 = answer }
            isAnswered.signal()
        }
        isAnswered.wait()
        return given.withLock { $0 }
    }

    func count(_ sql: String) throws -> Int64 {
        try sample.count("select count(*) from \(sql)") ?? -1
    }
}
