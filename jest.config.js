module.exports = {
  testEnvironment: 'node',
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  transform: { '^.+\\.ts$': ['@swc/jest', { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' }, module: { type: 'commonjs' } }] },
  modulePathIgnorePatterns: ['<rootDir>/dist/', '<rootDir>/tools/', '<rootDir>/.cache/'],
  reporters: ['default', '<rootDir>/test/support/reporter.js'],
  testTimeout: 30000,
  maxWorkers: 2,
  // A test file that fails while it starts may leave a connection open; in CI that must not keep the run from ending.
  forceExit: Boolean(process.env.CI),
};
