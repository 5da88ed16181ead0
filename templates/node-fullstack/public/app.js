'use strict';

const find = (id) => document.getElementById(id);

find('form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const form = event.currentTarget;
  const answer = await fetch('/api/entries', {
    method: 'POST',
    body: JSON.stringify(Object.fromEntries(new FormData(form))),
  });
  find('error').textContent = answer.ok ? '' : (await answer.json()).error;
  if (answer.ok) form.reset();
  await show();
});

async function show() {
  const { database, entries = [] } = await (await fetch('/api/state')).json();
  const state = find('database');
  state.className = `state ${!database ? 'none' : database.reachable ? 'good' : 'bad'}`;
  state.textContent = describe(database);
  find('form').hidden = !database?.reachable;
  find('entries').replaceChildren(...entries.map(entryOf));
}

function describe(database) {
  if (!database)
    return 'No database yet. Attach a PostgreSQL database to this application, or set DATABASE_URL, and deploy again.';
  if (!database.reachable) return 'There is a DATABASE_URL, but no database answers there. The log says more.';
  return `PostgreSQL ${database.version}, database ${database.name}, ${database.size}`;
}

function entryOf({ name, message, created_at: at }) {
  const item = document.createElement('li');
  const head = document.createElement('strong');
  const time = document.createElement('time');
  const text = document.createElement('p');
  head.textContent = name;
  time.textContent = at.slice(0, 16);
  text.textContent = message;
  item.append(head, time, text);
  return item;
}

void show();
