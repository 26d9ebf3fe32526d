/// A document written again on one line, with nothing of it changed but the space between tokens.
///
/// Numbers, texts and the order of members keep their spelling, so nothing is lost.
struct JSONCompactText {
    private(set) var bytes: [UInt8] = []
    private let replacements: [(index: Int, document: JSONDocument)]

    /// Writes a document with other documents in the place of some of its values, by their nodes.
    init(_ document: JSONDocument, replacing replacements: [(index: Int, document: JSONDocument)]) {
        self.replacements = replacements
        append(document, 0)
    }

    private mutating func append(_ document: JSONDocument, _ index: Int) {
        let node = document.nodes[index]
        var place = index + 1
        switch node.kind {
        case .object:
            bytes.append(UInt8(ascii: "{"))
            while place < Int(node.next) {
                if place > index + 1 { bytes.append(UInt8(ascii: ",")) }
                appendSpelling(document, place)
                bytes.append(UInt8(ascii: ":"))
                if let nested = replacements.first(where: { $0.index == place + 1 }) {
                    bytes += JSONCompactText(nested.document, replacing: []).bytes
                } else {
                    append(document, place + 1)
                }
                place = Int(document.nodes[place + 1].next)
            }
            bytes.append(UInt8(ascii: "}"))
        case .array:
            bytes.append(UInt8(ascii: "["))
            while place < Int(node.next) {
                if place > index + 1 { bytes.append(UInt8(ascii: ",")) }
                append(document, place)
                place = Int(document.nodes[place].next)
            }
            bytes.append(UInt8(ascii: "]"))
        default: appendSpelling(document, index)
        }
    }

    private mutating func appendSpelling(_ document: JSONDocument, _ index: Int) {
        let node = document.nodes[index]
        bytes.append(contentsOf: document.bytes[Int(node.start)..<Int(node.end)])
    }
}
