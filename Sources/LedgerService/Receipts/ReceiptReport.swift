/// What became of verifyReceipt responses.
public struct ReceiptReport: Hashable, Sendable {
    /// The responses that were read.
    public var bodies = 0
    /// Those that tell of no purchase, such as those of new installations.
    public var empty = 0
    /// Those of which nothing was used.
    public var rejected = 0
    /// New events.
    public var appended = 0
    /// Facts that were there already.
    public var duplicate = 0
    /// Facts that say something else than the event under their key; kept beside it.
    public var conflict = 0
    /// Facts that the database could not hold; their bytes are kept.
    public var quarantined = 0
    /// Objects of which something, or everything, could not be read.
    public var flagged = 0
    /// Whether the caller stopped it before the end of the file.
    public var isStopped = false

    /// Makes the report of no responses.
    public init() {}

    /// The counts as one JSON object.
    public var json: String {
        var json = JSONWriter()
        json.beginObject()
        json.member("bodies", bodies)
        json.member("empty", empty)
        json.member("rejected", rejected)
        json.member("appended", appended)
        json.member("duplicate", duplicate)
        json.member("conflict", conflict)
        json.member("quarantined", quarantined)
        json.member("flagged", flagged)
        json.endObject()
        return json.text
    }
}
