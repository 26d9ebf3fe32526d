internal import Ledger
internal import LedgerService
internal import Postgres

/// `subledger generations list|drop`.
enum GenerationsCommands {
    static let list = Command(
        name: "generations list",
        summary: "List the builds of the read models, and the schemas of what was known when.",
        options: [.database, .config, .json],
        details: """
            Of each read model one generation is live; one that is retired goes when nobody reads
            it any more. The schemas are those of `subledger rebuild --known-at … --into SCHEMA`.
            """,
        run: runList
    )

    static let drop = Command(
        name: "generations drop",
        summary: "Drop a schema that `subledger rebuild --into` made.",
        operands: "SCHEMA",
        options: [.database, .config],
        details: "The live read models are no schema of that kind and cannot be dropped.",
        run: runDrop
    )

    private static func runList(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        let database = try Database.open(arguments, Configuration.find(arguments))
        let connection = try database.connect(as: .reader)
        let generations = try GenerationStanding.all(connection)
        let schemas = try KeptSchema.all(connection)
        let output = Output.standard()
        if arguments.has("--json") {
            try output.line(json(generations, schemas))
        } else {
            var table = TextTable("read model", "#generation", "state", "#events", "since")
            for generation in generations {
                table.add(
                    generation.readModel,
                    "\(generation.number)",
                    generation.state,
                    grouped(generation.events),
                    minute(generation.startedAt)
                )
            }
            try output.table(table)
            if !schemas.isEmpty {
                try output.line()
                var kept = TextTable("schema", "known at", "#to event", "#events", "state")
                for schema in schemas {
                    kept.add(
                        schema.name,
                        schema.knownAt.map(minute) ?? "–",
                        "\(schema.knownToPosition)",
                        grouped(schema.events),
                        schema.finishedAt == nil ? "unfinished" : "whole"
                    )
                }
                try output.table(kept)
            }
        }
        try output.flush()
        return .done
    }

    private static func json(_ generations: [GenerationStanding], _ schemas: [KeptSchema]) -> String
    {
        var json = JSONWriter(pretty: true)
        json.beginObject()
        json.key("generations")
        json.beginArray()
        for generation in generations {
            json.beginObject()
            json.member("read_model", generation.readModel)
            json.member("generation", generation.number)
            json.member("state", generation.state)
            json.member("version", generation.version)
            json.member("events", generation.events)
            json.member("started_at", generation.startedAt)
            json.endObject()
        }
        json.endArray()
        json.key("schemas")
        json.beginArray()
        for schema in schemas {
            json.beginObject()
            json.member("name", schema.name)
            json.member("known_at", schema.knownAt)
            json.member("known_at_position", schema.knownToPosition)
            json.member("events", schema.events)
            json.member("started_at", schema.startedAt)
            json.member("finished_at", schema.finishedAt)
            json.endObject()
        }
        json.endArray()
        json.endObject()
        return json.text
    }

    private static func runDrop(_ arguments: Arguments) throws -> ExitCode {
        let name = try arguments.operands(named: "SCHEMA")[0]
        let database = try Database.open(arguments, Configuration.find(arguments))
        let sessions = database.sessions(as: .projector)
        guard try KeptSchema.drop(name, { try sessions.open() }) else {
            throw CommandFailure.notFound(
                "no rebuild made a schema \(printable(name)); see: generations list"
            )
        }
        let output = Output.standard()
        try output.line("dropped \(name)")
        try output.flush()
        return .done
    }
}
