package import AppStore
internal import Crypto
internal import EventLog
internal import Ledger

/// A line after verification, with what is to become of it.
struct JudgedLine: Sendable {
    /// What is to become of a line.
    enum Judgement: Sendable {
        /// It is genuine and ours.
        case admitted(Admission)
        /// Nothing of it is kept.
        case rejected(Rejection)
        /// It is a saved body of Apple's Server API, with all that is in it.
        case answer(ResponseReading, body: [UInt8])
    }

    /// The number of the line, from 1.
    var number: Int
    /// What is to become of it.
    var judgement: Judgement

    /// Verifies a line; nil for an empty one.
    init?(_ line: LineReader.Line, verifier: Verifier, now: Timestamp) {
        switch line {
        case .tooLong(let number, let sizeBytes):
            self.number = number
            judgement = .rejected(.lineTooLong(sizeBytes: sizeBytes))
        case .text(let number, let bytes):
            self.number = number
            guard !SignedInput.isBlank(bytes) else { return nil }
            switch SignedInput.signedText(ofLine: bytes) {
            case .failure(let rejection):
                judgement = Judgement(ofBody: bytes, verifier, now: now) ?? .rejected(rejection)
            case .success(let text): judgement = Judgement(of: text, verifier, now: now)
            }
        }
    }
}

extension JudgedLine.Judgement {
    /// Decides what is to become of a saved response; nil for what is none.
    init?(ofBody bytes: [UInt8], _ verifier: Verifier, now: Timestamp) {
        guard bytes.contains(UInt8(ascii: "{")), let answer = try? APIAnswer(bytes),
            answer.form != .other
        else { return nil }
        let digest = hexadecimal(SHA256.digest(bytes))
        let reading = ResponseReading(
            answer,
            of: nil,
            correlation: digest,
            verifier: verifier,
            now: now
        )
        self = .answer(reading, body: bytes)
    }

    /// Decides what is to become of a signed text.
    init(of text: [UInt8], _ verifier: Verifier, now: Timestamp) {
        switch verifier.verify(text, now: now) {
        case .undecided(let rejection): self = .rejected(rejection)
        case .rejected(let rejection):
            guard rejection.belongsInQuarantine else {
                self = .rejected(rejection)
                return
            }
            let document = QuarantinedDocument(received: text, reason: rejection.reason.rawValue)
            self = .admitted(.quarantine(document, detail: rejection.detail))
        case .trusted(let document): self = .admitted(Admission(document).prepared())
        }
    }
}

extension Rejection {
    /// A line above the reader's limit, which was passed over.
    package static func lineTooLong(sizeBytes: Int) -> Rejection {
        Rejection(
            reason: .tooLarge,
            detail: "the line has \(sizeBytes) bytes; at most "
                + "\(LineReader.lineSizeMaxBytes) are read"
        )
    }
}
