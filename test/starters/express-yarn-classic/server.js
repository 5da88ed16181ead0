const express = require('express');
const morgan = require('morgan');
const path = require('node:path');

const app = express();
app.set('view engine', 'ejs');
app.set('views', path.join(__dirname, 'views'));
app.use(morgan('tiny'));
app.get('/', (request, response) => response.render('index', { title: 'Express on yarn classic' }));
app.get('/env', (request, response) => response.json({ node: process.version, env: process.env.NODE_ENV }));

const port = process.env.PORT || 3000;
app.listen(port, () => console.log(`Listening on ${port}`));
