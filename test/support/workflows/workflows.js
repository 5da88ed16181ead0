// All workflows, with the resource in whose name a test gives orders for their steps.
const { steps: deployment } = require('../../../jobs/deployments/deployment/steps');

exports.workflows = {
  deployment: { steps: deployment, ownerOf: ({ application_id }) => application_id },
};
