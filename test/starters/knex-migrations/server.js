const express = require('express');
const knex = require('knex')(require('./knexfile'));

const app = express();
app.use(express.json());
app.get('/', async (request, response) => response.json({ node: process.version, notes: await knex('notes').select() }));
app.post('/', async (request, response) => response.json(await knex('notes').insert({ body: 'written by knex' }).returning('*')));
app.listen(process.env.PORT || 3000);
