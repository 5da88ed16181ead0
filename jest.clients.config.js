// Stock clients of databases, installed by npm ci --prefix test/clients.
const suite = require('./jest.config');

module.exports = {
  ...suite,
  testMatch: ['<rootDir>/test/clients/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
};
