// The bar on top keeps key and project in this browser; every call of the console carries them.
'use strict';

const STORE = 'platform-api-console';
const field = (id) => document.getElementById(id);
const access = JSON.parse(localStorage.getItem(STORE) || '{"key":"","project":""}');
let published;

field('key').value = access.key;
field('project').value = access.project;

field('access').addEventListener('submit', (event) => {
  event.preventDefault();
  access.key = field('key').value.trim();
  access.project = field('project').value.trim();
  localStorage.setItem(STORE, JSON.stringify(access));
  show();
  note('Kept in this browser.');
});

field('forget').addEventListener('click', () => {
  access.key = access.project = field('key').value = field('project').value = '';
  localStorage.removeItem(STORE);
  show();
  note('Forgotten.');
});

start();

async function start() {
  const answer = await fetch('/v2/openapi.json');
  published = await answer.json();
  show();
}

function show() {
  SwaggerUIBundle({
    dom_id: '#console',
    spec: consoleSpec(published, location.origin, access.project),
    presets: [SwaggerUIBundle.presets.apis],
    layout: 'BaseLayout',
    deepLinking: true,
    docExpansion: 'list',
    defaultModelsExpandDepth: -1,
    displayRequestDuration: true,
    filter: true,
    tryItOutEnabled: true,
    persistAuthorization: true,
    validatorUrl: null,
    requestInterceptor: withAccess,
  });
}

function withAccess(request) {
  if (access.key) request.headers.Authorization = `Bearer ${access.key}`;
  if (access.project) request.headers['X-Svc-Project'] = access.project;
  return request;
}

function note(text) {
  field('note').textContent = text;
}
