package import HTTP

/// A consumer that gets the notifications as Apple would post them.
package struct ForwardDestination: Hashable, Sendable {
    /// What it is called in the database, in metrics and for people.
    package var name: String
    /// Where it takes notifications.
    package var url: HTTPURL
    /// The `notificationType`s that it wants; empty for all.
    package var types: Set<String> = []
    /// The PEM file with the certificates to trust instead of the system's.
    package var trustFile: String?
    /// The first position that it gets when it is new; nil for what comes from then on.
    package var startPosition: Int64?

    /// Makes a destination, called after its host.
    package init(url: HTTPURL, name: String? = nil) {
        self.url = url
        self.name = name ?? Self.name(of: url)
    }

    /// Whether it wants notifications of a type.
    func wants(_ type: String?) -> Bool {
        types.isEmpty || type.map { types.contains($0) } ?? false
    }

    private static func name(of url: HTTPURL) -> String {
        let standard = url.isSecure ? 443 : 80
        // The brackets of an IPv6 address belong to no name.
        let host = url.host.filter { $0 != "[" && $0 != "]" }
        return url.port == standard ? host : "\(host):\(url.port)"
    }

    /// Whether the text can be a name: it must also fit into a label and a line.
    static func isName(_ text: String) -> Bool {
        (1...100).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "a")...UInt8(ascii: "z"):
                    true
                default: "._:-".utf8.contains(byte)
                }
            }
    }
}

extension ForwardDestination {
    /// Reads an element of the list `forward`.
    init?(_ reader: ConfigurationReader, folder: String) {
        let text = reader.required("url", like: "https://billing.example.com/app-store")
        var url: HTTPURL?
        if let text {
            do { url = try HTTPURL(text) } catch { reader.report("url", error.message) }
        }
        let name = reader.string("name")
        if let name, !Self.isName(name) {
            reader.report("name", "wanted are 1 to 100 letters, digits and . _ : -")
        }
        let types = reader.strings("types")
        for (index, type) in types.enumerated() {
            let isWord = type.utf8.allSatisfy {
                (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) || $0 == UInt8(ascii: "_")
            }
            if type.isEmpty || !isWord {
                reader.report(
                    "types[\(index)]",
                    "“\(type)”; wanted is a notificationType such as \"DID_RENEW\""
                )
            }
        }
        if types.isEmpty, reader.isList("types") {
            reader.report("types", "the list is empty; leave it out to forward all types")
        }
        let trustFile = reader.string("ca_file").map { $0.hasPrefix("/") ? $0 : folder + $0 }
        let start = reader.integer(
            "start_position",
            in: 1...Int64.max,
            remedy: "the first position that a new destination gets; left out it is the log's end"
        )
        reader.refuseUnknownKeys()
        guard let url else { return nil }
        self.init(url: url, name: name)
        self.types = Set(types)
        self.trustFile = trustFile
        startPosition = start
    }
}
