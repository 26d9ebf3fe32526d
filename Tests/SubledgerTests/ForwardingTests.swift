import Foundation
import HTTP
import Synchronization
import TestSupport
import Testing

/// Forwarding by the built program: several processes, ends without warning, a consumer that fails.
@Suite struct ForwardingTests {
    /// A consumer that remembers what it took.
    private final class Consumer: Sendable {
        private let shelf = Mutex<(taken: [String], tried: Int)>(([], 0))
        private let server = Mutex<HTTPServer?>(nil)
        let port: UInt16

        /// Starts it; every `failing`-th delivery is answered 500 without being taken.
        init(failingEach failing: Int) throws {
            let box = Box()
            let started = try HTTPServer(
                configuration: HTTPServerConfiguration(),
                router: Router([
                    Route(.post, "/hook", bodyLimitBytes: 1 << 20) { request in
                        guard let consumer = box.consumer.withLock({ $0.value }) else {
                            return .answer(HTTPResponse(status: 503))
                        }
                        let body = String(decoding: request.body, as: UTF8.self)
                        let isTaken = consumer.shelf.withLock { shelf in
                            shelf.tried += 1
                            guard shelf.tried % failing != 0 else { return false }
                            shelf.taken.append(body)
                            return true
                        }
                        return .answer(HTTPResponse(status: isTaken ? 200 : 500))
                    }
                ])
            )
            self.port = started.port
            server.withLock { $0 = started }
            box.consumer.withLock { $0.value = self }
        }

        deinit { _ = server.withLock { $0.take() }?.stop(within: .seconds(5)) }

        var taken: [String] { shelf.withLock { $0.taken } }

        private struct Weak { weak var value: Consumer? }

        private final class Box: Sendable {
            let consumer = Mutex(Weak())
        }
    }

    @Test func killedAndInNumbersEachIsForwardedAndInOrder() throws {
        let consumer = try Consumer(failingEach: 9)
        let served = try ServedProgram(on: .shared, subscriptions: 15)
        // The first process had no destination; the others read one.
        served.kill()
        let file = """
            {"forward": [{"name": "billing", "url": "http://127.0.0.1:\(consumer.port)/hook",
                "start_position": 1}]}
            """
        try Data(file.utf8).write(to: URL(filePath: served.folder.path + "/subledger.json"))
        try served.start()
        let other = try ServedProgram(
            in: served.folder,
            database: served.database,
            conninfo: served.database.conninfo
        )
        let lines = Array(Set(try served.notifications())).sorted()
        for (number, line) in lines.enumerated() {
            let one = number.isMultiple(of: 2) ? served : other
            #expect(one.deliver(Self.posted(line, number))?.status == 200)
            // Who delivers it again changes nothing of what was posted first.
            if number % 5 == 1 { #expect(one.deliver(line)?.status == 200) }
            // Whoever forwards, both are ended in the middle of it.
            if number == lines.count / 3 {
                served.kill()
                try served.start()
            }
            if number == lines.count * 2 / 3 {
                other.kill()
                try other.start()
            }
        }
        let numbers = lines.enumerated().map { ($1, $0) }
        let places = Dictionary(uniqueKeysWithValues: numbers)
        let wanted = try order(served).mapValues { bodies in
            bodies.map { Self.posted($0, places[$0] ?? -1) }
        }
        #expect(wanted.values.reduce(0) { $0 + $1.count } == lines.count)
        var tries = 0
        while Set(consumer.taken).count < lines.count, tries < 1_200 {
            usleep(100_000)
            tries += 1
        }
        let listed = try served.run("forwards")
        #expect(Set(consumer.taken).count == lines.count, "\(listed.output)")
        // What is new of a stream comes after all that came before it.
        for (stream, bodies) in wanted {
            let own = Set(bodies)
            var firsts: [String] = []
            var seen: Set<String> = []
            for body in consumer.taken where own.contains(body) && seen.insert(body).inserted {
                firsts.append(body)
            }
            #expect(firsts == bodies, "stream \(stream)")
        }
        #expect(listed.status == 0 && listed.output.contains("billing"), "\(listed.output)")
        let json = try served.run("forwards", "--json")
        let rows =
            try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [[String: Any]]
        #expect(rows?.first?["destination"] as? String == "billing")
        let token = try served.token("reader")
        let metrics = try #require(served.get("/metrics", token: token))
        let page = String(decoding: metrics.body, as: UTF8.self)
        #expect(page.contains("subledger_forward_lag_events{destination=\"billing\"}"))
        #expect(served.terminate() == 0)
        #expect(other.terminate() == 0)
    }

    /// A notification in one of the bodies that JSON allows for it.
    private static func posted(_ line: String, _ number: Int) -> String {
        switch number % 5 {
        case 1: "{ \"signedPayload\" : " + line.dropFirst(17).dropLast() + " }\r\n"
        case 2: "{\"é\":[\"\\u0041\"],\"signedPayload\":" + line.dropFirst(17)
        case 3: line.replacing("\"eyJ", with: "\"\\u0065yJ")
        default: line
        }
    }

    /// What each stream holds, in the body that Apple posts, in the order of the log.
    private func order(_ served: ServedProgram) throws -> [String: [String]] {
        let token = try served.token("auditor")
        var result: [String: [String]] = [:]
        var after = 0
        while true {
            let path = "/v1/events?include=evidence&limit=100&epoch=1&after=\(after)"
            let answer = try #require(served.get(path, token: token))
            let events = try #require(answer.object["events"] as? [[String: Any]])
            if events.isEmpty { return result }
            for event in events {
                after = try #require(event["position"] as? Int)
                // What was set up is recorded beside what Apple sent.
                guard event["kind"] as? String == "notification" else { continue }
                let stream = try #require(event["stream"] as? String)
                let text = try #require(event["signed_payload"] as? String)
                result[stream, default: []].append("{\"signedPayload\":\"\(text)\"}")
            }
        }
    }
}
