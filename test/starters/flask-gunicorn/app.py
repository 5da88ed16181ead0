from flask import Flask, jsonify

app = Flask(__name__)


@app.get("/")
def index():
    return "Flask behind gunicorn"


@app.get("/health")
def health():
    return jsonify(status="ok")
