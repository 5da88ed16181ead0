// Loaded into a program of a test before its entry: other values for what no operator sets.
const { fixedValues } = require('../../../core/settings/fixed');

Object.assign(fixedValues, JSON.parse(process.env.TEST_FIXED_VALUES ?? '{}'));
