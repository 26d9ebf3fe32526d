/// One thing that was looked at, and how it is.
package struct Diagnosis: Hashable, Sendable {
    /// How something is.
    package enum Level: String, Hashable, Sendable {
        /// As it should be.
        case ok
        /// It works, and somebody should look.
        case warn
        /// It does not work, or what was confirmed may be lost.
        case fail
    }

    /// What was looked at, by a stable name.
    package var name: String
    /// How it is.
    package var level: Level
    /// What was found.
    package var finding: String
    /// What to do; nil where nothing is to be done.
    package var remedy: String?

    /// Makes a diagnosis.
    package init(_ name: String, _ level: Level, _ finding: String, remedy: String? = nil) {
        self.name = name
        self.level = level
        self.finding = finding
        self.remedy = remedy
    }

    /// Writes it as `subledger doctor --json` shows it.
    package func write(to json: inout JSONWriter) {
        json.beginObject()
        json.member("name", name)
        json.member("level", level.rawValue)
        json.member("finding", finding)
        json.member("remedy", remedy)
        json.endObject()
    }
}
