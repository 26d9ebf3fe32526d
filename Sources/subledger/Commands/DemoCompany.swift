internal import AppStoreSimulator
internal import LedgerService

/// The company of a demo: its notifications in a file, its configuration, and the truth.
struct DemoCompany {
    /// The grace period that the company has configured.
    static let gracePeriodDays = 16

    /// What was simulated.
    let options: Simulation.Options
    /// What happened.
    let statistics: SimulationStatistics
    /// The right answer about each subscription that anything arrived of, at the end.
    let truth: [String: TruthAnswer]

    /// Simulates the company and writes its files.
    init(_ options: Simulation.Options, folder: DemoFolder, output: Output) throws {
        self.options = options
        let simulation = Simulation(options)
        try Self.write(simulation.authority.rootPEM, to: folder.rootPath)
        try Self.write(
            Self.configuration(bundleID: simulation.life(0).chain.bundleID),
            to: folder.configurationPath
        )
        let notifications = try OutputFile(path: folder.notificationsPath)
        let truthFile = try OutputFile(path: folder.truthPath)
        let bar = ProgressBar("simulate", unit: "notifications")
        var truth: [String: TruthAnswer] = [:]
        statistics = try simulation.run(
            truth: { row throws(any Error) in
                truth[row.originalTransactionID] = row.at(options.until)
                try truthFile.write(row.wireValue.bytes)
                try truthFile.line("")
            },
            delivery: { line throws(any Error) in
                try notifications.write(line)
                try notifications.line("")
            },
            progress: { written, total in
                bar.update(fraction: Double(written) / Double(max(1, total)), count: written)
            }
        )
        bar.clear()
        try notifications.finish()
        try truthFile.finish()
        self.truth = truth
        try DemoCommand.heading("Simulate: two years of a made-up company", output)
        try output.line(
            wrapped(SimulateCommand.text(statistics), width: Terminal.columns, hangingBy: 0)
        )
        try output.flush()
    }

    private static func write(_ text: String, to path: String) throws {
        let file = try OutputFile(path: path)
        try file.write(text.utf8)
        try file.finish()
    }

    private static func configuration(bundleID: String) -> String {
        var json = JSONWriter(pretty: true)
        json.beginObject()
        json.key("apps")
        json.beginArray()
        json.beginObject()
        json.member("bundle_id", bundleID)
        json.key("environments")
        json.beginArray()
        json.string("Sandbox")
        json.endArray()
        json.key("anchors")
        json.beginArray()
        json.string("root.pem")
        json.endArray()
        json.member("grace_period_days", gracePeriodDays)
        json.key("products")
        json.beginObject()
        for product in Catalogue.products {
            json.key(product.id)
            json.beginObject()
            json.member("group", product.groupID)
            json.member("level", product.level)
            json.member("period", product.period)
            json.endObject()
        }
        json.endObject()
        json.key("access_policy")
        json.beginObject()
        json.member("billing_retry_access", "deny")
        json.endObject()
        json.endObject()
        json.endArray()
        json.endObject()
        return json.text + "\n"
    }
}
