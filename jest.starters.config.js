// Applications in the style of public starters. Their packages come from the registries.
const suite = require('./jest.config');

module.exports = {
  ...suite,
  testMatch: ['<rootDir>/test/starters/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
};
