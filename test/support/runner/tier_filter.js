// Jest's filter: of the files that match its arguments, those that this run takes (TEST_TIER). `npm test` takes each
// file that is named.
require('./typescript');
const path = require('node:path');
const { selectedFiles } = require('./selection.ts');
const { testFiles } = require('./tiers.ts');

const ROOT = path.join(__dirname, '../../..');
const WITH_VALUE = /^(-t|-c|-w|--(testNamePattern|config|maxWorkers|reporters|shard|seed|testTimeout|outputFile))$/;
const words = process.argv.slice(2).filter((word, index, all) => !/^-/.test(word) && !WITH_VALUE.test(all[index - 1]));
const isNamed = (file) => words.some((word) => file.includes(word.replace(/^\.\//, '')));

module.exports = (paths) => {
  const selected = new Set(selectedFiles(process.env.TEST_TIER));
  if (process.env.TEST_TIER === 'ci') process.env.TEST_HEAVY ??= JSON.stringify(selectedFiles('of_quarter'));
  const known = new Set(testFiles);
  return {
    filtered: paths.filter((file) => {
      const name = path.relative(ROOT, file);
      return selected.has(name) || (process.env.TEST_TIER === 'every' && known.has(name) && isNamed(name));
    }),
  };
};
