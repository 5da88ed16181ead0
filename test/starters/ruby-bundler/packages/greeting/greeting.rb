GREETING = 'Hello from Ruby'
