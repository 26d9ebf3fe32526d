# make demo     what subledger does, shown on a simulated company (about three minutes to build)
# make test     all tests in Swift
# make contract made-up requests to a running server, which needs PyPI the first time
# make fuzz     made-up inputs for everything that reads what strangers send
# make sanitize suites under the address and the thread sanitizer
# make mutations  breaks fold and verifier in small ways; the tests must notice (an hour or more)
#
# Both first install the Debian packages that are missing and say which. The Swift toolchain (6.3)
# must be there already: https://www.swift.org/install/linux/

SWIFT ?= swift
SOURCES = Package.swift Sources Tests Projections schema

.DEFAULT_GOAL := help
.PHONY: help demo test contract fuzz sanitize mutations build release format lint packages

help:
	@echo "make demo    build and show what subledger does"
	@echo "make test    run all tests in Swift"
	@echo "make contract  hold a running server to its OpenAPI document"
	@echo "make fuzz    hand made-up inputs to what reads what strangers send"
	@echo "make sanitize  run suites under the address and the thread sanitizer"
	@echo "make mutations  break fold and verifier on purpose; the tests must notice"
	@echo "make build   build for debugging"
	@echo "make release build the program: .build/release/subledger"
	@echo "make format  bring the sources into the house's form"
	@echo "make lint    check that they are in it"

demo: release
	.build/release/subledger demo

test: packages
	$(SWIFT) test --disable-xctest

# schemathesis is installed below .build/ from PyPI.
contract: build
	Tests/http-contract/run .build/debug/subledger

fuzz: packages
	Tests/fuzzing/run

sanitize: packages
	Tests/sanitizers/run address thread

mutations: packages
	Tests/mutations/run

build: packages
	$(SWIFT) build

release: packages
	$(SWIFT) build -c release --product subledger

format:
	$(SWIFT) format -i -p -r $(SOURCES)

lint:
	$(SWIFT) format lint --strict -p -r $(SOURCES)

packages:
	@bash .ci/packages
	@command -v $(SWIFT) >/dev/null || { \
		echo "The Swift toolchain is not on the PATH: https://www.swift.org/install/linux/" >&2; \
		exit 1; }
