/// What became of the lines of a file.
///
/// Every line that was read is counted once among appended, duplicate, conflict, rejected and
/// quarantined, a saved response of Apple's once for each signed text and status in it; `unrecognised` says how many of the appended ones hold a value of Apple's that this
/// program does not know.
public struct IngestReport: Hashable, Sendable {
    /// The lines that were read, empty ones not among them.
    public var read = 0
    /// New events.
    public var appended = 0
    /// Facts that were there already.
    public var duplicate = 0
    /// Documents that say something else than the event under their key; kept beside it.
    public var conflict = 0
    /// Lines that cannot be used; nothing of them is kept.
    public var rejected = 0
    /// Genuine documents that could not become events; their bytes are kept.
    public var quarantined = 0
    /// Appended events with a value that this program does not know.
    public var unrecognised = 0
    /// Whether the caller stopped it before the end of the file.
    public var isStopped = false

    /// Makes the report of no lines.
    public init() {}

    /// The counts as one JSON object.
    public var json: String {
        var json = JSONWriter()
        json.beginObject()
        json.member("read", read)
        json.member("appended", appended)
        json.member("duplicate", duplicate)
        json.member("conflict", conflict)
        json.member("rejected", rejected)
        json.member("quarantined", quarantined)
        json.member("unrecognised", unrecognised)
        json.endObject()
        return json.text
    }
}

/// A line that did not become an event, or not the one that its key names.
public struct RefusedLine: Hashable, Sendable {
    /// What became of it.
    public enum Outcome: String, Hashable, Sendable {
        /// Nothing of it is kept.
        case rejected
        /// Its bytes are kept in `ledger.quarantine`.
        case quarantined
        /// Its bytes are kept in `ledger.conflict`.
        case conflict
        /// It was used, but for what could not be read.
        case flagged
    }

    /// The number of the line, from 1.
    public var line: Int
    /// What became of it.
    public var outcome: Outcome
    /// The reason's stable name.
    public var reason: String
    /// What exactly, safe to log.
    public var detail: String

    /// The line of a file of rejects.
    public var json: String {
        var json = JSONWriter()
        json.beginObject()
        json.member("line", line)
        json.member("outcome", outcome.rawValue)
        json.member("reason", reason)
        json.member("detail", detail)
        json.endObject()
        return json.text
    }
}
