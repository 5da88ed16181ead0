// Key and project are taken from the console at /v2/docs unless the headers editor overrides them.
'use strict';

const QUERY = `# Key and project go into the Headers editor below.
# A key is needed for everything but listErrors.
{
  listVolumes(limit: 5) {
    data { id name size_gb status }
    next_cursor
  }
}
`;

const { Authorization = 'Bearer ', 'X-Svc-Project': project = '' } = knownHeaders();
const headers = { Authorization, 'X-Svc-Project': project };

ReactDOM.createRoot(document.getElementById('graphiql')).render(
  React.createElement(GraphiQL, {
    fetcher: GraphiQL.createFetcher({ url: location.pathname, fetch: withKnownHeaders }),
    defaultQuery: QUERY,
    defaultHeaders: JSON.stringify(headers, null, 2),
    defaultEditorToolsVisibility: 'headers',
    isHeadersEditorEnabled: true,
    shouldPersistHeaders: true,
  }),
);

// Key and project stored by the console at /v2/docs, read again for each request, since they may have changed.
function knownHeaders() {
  const known = JSON.parse(localStorage.getItem('platform-api-console') || '{}');
  return {
    ...(known.key && { Authorization: `Bearer ${known.key}` }),
    ...(known.project && { 'X-Svc-Project': known.project }),
  };
}

// A header that is empty in the editor takes the console's value. Without a key the schema can still be read.
function withKnownHeaders(url, options) {
  const filled = Object.entries(options.headers).filter(([, value]) => !/^(?:Bearer)?\s*$/i.test(value));
  return fetch(url, { ...options, headers: { ...knownHeaders(), ...Object.fromEntries(filled) } });
}
