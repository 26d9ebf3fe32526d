import HTTP
import Testing

@testable import LedgerService

@Suite struct ForwardDestinationTests {
    private func file(_ list: String) throws -> Configuration {
        let text = "{\"forward\": \(list)}"
        return try Configuration(bytes: Array(text.utf8), path: "conf/subledger.json")
    }

    private func problems(_ list: String) -> [String] {
        let error = #expect(throws: ConfigurationError.self) { try file(list) }
        return error?.problems.map { "\($0.field): \($0.message)" } ?? []
    }

    @Test func destinationsAreReadAndNamedAfterTheirHosts() throws {
        let read = try file(
            """
            [{"url": "https://billing.example.com/hook?token=x"},
             {"url": "http://10.0.0.1:8080/in", "types": ["REFUND"], "ca_file": "ca.pem"},
             {"url": "https://[::1]/", "name": "six", "start_position": 12}]
            """
        ).forward
        #expect(read.map(\.name) == ["billing.example.com", "10.0.0.1:8080", "six"])
        #expect(read[0].url.text == "https://billing.example.com/hook?token=x")
        #expect(read[0].wants("DID_RENEW") && read[0].wants(nil) && read[0].trustFile == nil)
        #expect(read[1].wants("REFUND") && !read[1].wants("DID_RENEW") && !read[1].wants(nil))
        #expect(read[1].trustFile == "conf/ca.pem")
        #expect(read[2].startPosition == 12)
    }

    @Test func everythingWrongIsNamedAndNoSecretIsShown() {
        let found = problems(
            """
            [{"url": "https://u:secret@h/"}, {"name": "x"}, {"url": "ftp://h/secret"},
             {"url": "https://a/", "name": "no blanks"}, {"url": "https://b/", "types": []},
             {"url": "https://c/", "types": ["did_renew"]},
             {"url": "https://d/", "start_position": 0},
             {"url": "https://e/1"}, {"url": "https://e/2"}, {"url": "https://f/", "tipes": []}]
            """
        )
        for part in [
            "forward[0].url", "forward[1].url", "forward[2].url", "forward[3].name",
            "forward[4].types", "forward[5].types[0]", "forward[6].start_position",
            "forward[9].tipes",
        ] {
            #expect(found.contains { $0.hasPrefix(part) }, "\(part) in \(found)")
        }
        #expect(found.contains { $0.contains("is there twice") })
        #expect(!found.joined().contains("secret"))
    }
}
