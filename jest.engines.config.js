// What installed engines take minutes for: servers that are killed, restored and copied, and units that want too much.
const suite = require('./jest.config');

module.exports = {
  ...suite,
  testMatch: ['<rootDir>/test/engines/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
};
