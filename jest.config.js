// As it runs for users: graphql-js checks more, and more slowly, elsewhere.
process.env.NODE_ENV = 'production';
// Which test files run: test/support/runner/selection.ts. `npm test` runs each that is named.
process.env.TEST_TIER ??= 'every';

// Programs that tests start free the host at once, and clean up with one key; the tours of documents and the demo do as
// they do for users.
process.env.RETENTION_OF_DELETED_DAYS ??= '0';
process.env.DESTROYING_CALLS_PER_MINUTE ??= '1000000';

module.exports = {
  testEnvironment: 'node',
  // The clean-up puts one more proxy around what outlives a file, for each file, until the stack overflows.
  testEnvironmentOptions: { globalsCleanup: 'off' },
  testSequencer: '<rootDir>/test/support/runner/sequencer.js',
  runtime: '<rootDir>/test/support/runner/node_runtime.js',
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  filter: '<rootDir>/test/support/runner/tier_filter.js',
  globalSetup: '<rootDir>/test/support/runner/global-setup.ts',
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' }, module: { type: 'commonjs' } },
    ],
  },
  modulePathIgnorePatterns: [
    '<rootDir>/dist/',
    '<rootDir>/tools/',
    '<rootDir>/.cache/',
    '<rootDir>/test/starters/[^/]+/',
  ],
  reporters: ['default', '<rootDir>/test/support/runner/reporter.js'],
  // The seconds of each file in its line.
  slowTestThreshold: 0,
  testTimeout: 60000,
  // More than the cores of a small machine: many tests wait for processes.
  maxWorkers: 4,
  // A test file that fails while it starts may leave a connection open; in CI that must not keep the run from ending.
  forceExit: Boolean(process.env.CI) || process.env.TEST_TIER === 'bare',
};
