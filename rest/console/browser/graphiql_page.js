// Key and project start as the console at /v2/docs knows them; the headers editor changes and keeps them.
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

const known = JSON.parse(localStorage.getItem('platform-api-console') || '{}');
const headers = { Authorization: `Bearer ${known.key || ''}`, 'X-Svc-Project': known.project || '' };

ReactDOM.createRoot(document.getElementById('graphiql')).render(
  React.createElement(GraphiQL, {
    fetcher: GraphiQL.createFetcher({ url: location.pathname, fetch: withoutEmptyHeaders }),
    defaultQuery: QUERY,
    defaultHeaders: JSON.stringify(headers, null, 2),
    defaultEditorToolsVisibility: 'headers',
    isHeadersEditorEnabled: true,
    shouldPersistHeaders: true,
  }),
);

// A header that nobody filled in yet is no wrong key: the schema can be read without one.
function withoutEmptyHeaders(url, options) {
  const filled = Object.entries(options.headers).filter(([, value]) => !/^(?:Bearer)?\s*$/i.test(value));
  return fetch(url, { ...options, headers: Object.fromEntries(filled) });
}
