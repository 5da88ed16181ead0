// Loaded into the operator's command before its program: a repository that hangs is given up after seconds.
Object.assign(require('../../../dist/core/settings/fixed').fixedValues, { backupStalledSeconds: 4 });
