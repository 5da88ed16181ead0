// The last lines of a test run, for people and for plain rules: the slowest files, what was not run, and
// "N passed, N failed, N skipped".
const { writeSync } = require('node:fs');
const path = require('node:path');

const ROOT = path.join(__dirname, '../../..');
const SLOWEST = 20;

module.exports = function closingReporter() {
  // Jest puts its own summary after all reporters, so these lines wait for the end of the process. By then a forced
  // exit has closed the streams of Node, so they go to the descriptor.
  const write = (results) => process.once('exit', () => writeSync(1, closingLines(results).join('\n')));
  return { onRunComplete: (_, results) => void write(results) };
};

function closingLines(results) {
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, numRuntimeErrorTestSuites } = results;
  // A file that could not be loaded has no tests to count, so it counts as one that failed.
  const counts = [`${numPassedTests} passed`, `${numFailedTests + numRuntimeErrorTestSuites} failed`];
  const skipped = numPendingTests + numTodoTests;
  if (skipped) counts.push(`${skipped} skipped`);
  return ['', ...slowestIn(results), ...skippedIn(results), counts.join(', '), ''];
}

/** Seconds as they passed, so those of files that ran beside each other add up to more than the run took. */
function slowestIn({ testResults }) {
  if (testResults.length < 2) return [];
  const files = testResults
    .map(({ testFilePath, perfStats }) => ({
      name: path.relative(ROOT, testFilePath),
      seconds: perfStats.runtime / 1000,
    }))
    .sort((a, b) => b.seconds - a.seconds);
  const total = files.reduce((sum, { seconds }) => sum + seconds, 0);
  return [
    `seconds of ${files.length} files: ${total.toFixed(0)}, of the slowest:`,
    ...files.slice(0, SLOWEST).map(({ name, seconds }) => `${seconds.toFixed(1).padStart(7)} ${name}`),
  ];
}

function skippedIn({ testResults }) {
  const all = testResults.flatMap(({ testResults: tests }) => tests);
  return all
    .filter(({ status }) => status === 'pending' || status === 'todo')
    .map(({ fullName }) => `skipped: ${fullName}`);
}
