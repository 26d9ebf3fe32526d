/// One token of a document: a container, a key or a plain value.
///
/// The nodes of a document stand in the order of the text. A container is followed by its content;
/// in an object each value is preceded by its key.
struct JSONNode: Sendable {
    var kind: JSONValue.Kind
    /// Whether a text has a backslash in it.
    var hasEscape = false
    /// The first byte, quotes included.
    var start: Int32
    /// The byte after the last, quotes included.
    var end: Int32
    /// The node after this one and all that it holds.
    var next: Int32
    /// Of a key: what equal keys have in common, so that most unequal ones need no comparing.
    var mark: UInt32 = 0
}
